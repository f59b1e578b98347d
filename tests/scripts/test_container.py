"""The image and its composition keep the rules that linters of both have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from hub.settings import SETTINGS
from tests.support.command import ROOT

FOLDER = ROOT / "scripts" / "container"
Instruction = tuple[str, str]


def instructions() -> Iterator[Instruction]:
    text = (FOLDER / "Dockerfile").read_text()
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, rest = line.partition(" ")
        yield name, rest.strip()


def stages() -> list[Sequence[Instruction]]:
    found: list[list[Instruction]] = []
    for name, rest in instructions():
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, rest))
    return found


def of_kind(name: str, stage: Sequence[Instruction]) -> list[str]:
    return [rest for each, rest in stage if each == name]


def test_the_base_has_a_version() -> None:
    [(_, argument), *_] = instructions()
    base = argument.removeprefix("BASE=")
    assert re.fullmatch(r"[\w./-]+:\d[\w.-]+", base)
    assert all(of_kind("FROM", stage)[0].startswith("${BASE}") for stage in stages())


def test_what_runs_is_a_stage_without_tools_or_a_shell() -> None:
    building, running = stages()
    assert of_kind("RUN", building)
    assert not of_kind("RUN", running)
    for name in ("ENTRYPOINT", "CMD"):
        assert of_kind(name, running)[0].startswith("[")
    assert "CMD [" in of_kind("HEALTHCHECK", running)[0]


def test_it_runs_as_nobody_in_particular() -> None:
    [user] = of_kind("USER", stages()[-1])
    assert all(int(each) >= 10_000 for each in user.split(":"))


def test_nothing_is_left_of_installing() -> None:
    for command in of_kind("RUN", stages()[0]):
        for part in command.split("&&"):
            if "pip" in part and ("install" in part or "wheel" in part):
                assert "--no-cache-dir" in part
            if "apt-get" in part and "install" in part:
                assert "--no-install-recommends" in part
            assert "sudo" not in part.split()


def test_only_wheels_of_the_constraints_are_installed() -> None:
    commands = " ".join(of_kind("RUN", stages()[0]))
    assert "pip wheel" in commands
    assert "--constraint constraints.txt" in commands
    assert "--no-index --find-links /wheels" in commands


def test_every_file_it_copies_passes_the_ignore_file() -> None:
    passes = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source for rest in of_kind("COPY", stages()[0]) for source in rest.split()[:-1]
    }
    assert copied == passes
    assert all((ROOT / each).exists() for each in copied)


@pytest.fixture
def composition() -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_the_composition_builds_this_image(composition: dict[str, Any]) -> None:
    build = composition["services"]["hub"]["build"]
    context = FOLDER / build["context"]
    assert context.resolve() == ROOT
    assert (context / build["dockerfile"]).resolve() == FOLDER / "Dockerfile"


def test_its_hub_has_no_rights_and_keeps_its_data(composition: dict[str, Any]) -> None:
    hub = composition["services"]["hub"]
    assert hub["read_only"]
    assert hub["cap_drop"] == ["ALL"]
    assert hub["security_opt"] == ["no-new-privileges:true"]
    volumes = [each.split(":") for each in hub["volumes"]]
    assert volumes == [["data", "/data"]]
    assert "data" in composition["volumes"]
    assert of_kind("VOLUME", stages()[-1]) == ['["/data"]']


def test_ports_are_published_to_this_machine_only(composition: dict[str, Any]) -> None:
    assert all(
        each.startswith("127.0.0.1:")
        for each in composition["services"]["hub"]["ports"]
    )


def test_settings_are_settings_of_the_hub(composition: dict[str, Any]) -> None:
    known = {each.variable for each in SETTINGS}
    image = " ".join(of_kind("ENV", stages()[-1]))
    named = set(re.findall(r"FANFARE_\w+", image))
    assert named
    assert named | composition["services"]["hub"]["environment"].keys() <= known


def test_it_has_more_time_to_stop_than_the_hub_takes(
    composition: dict[str, Any],
) -> None:
    assert composition["services"]["hub"]["stop_grace_period"] == "15s"
    assert of_kind("STOPSIGNAL", stages()[-1]) == ["SIGTERM"]
