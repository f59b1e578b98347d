"""The image and its composition keep the rules that linters of both have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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


def read(name: str) -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / name).read_text())
    assert isinstance(found, dict)
    return found


@pytest.fixture(params=["compose.yaml", "compose.postgres.yaml"])
def composition(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read(request.param)


def test_the_composition_builds_this_image(composition: dict[str, Any]) -> None:
    build = composition["services"]["hub"]["build"]
    context = FOLDER / build["context"]
    assert context.resolve() == ROOT
    assert (context / build["dockerfile"]).resolve() == FOLDER / "Dockerfile"


def test_its_hub_keeps_its_data(composition: dict[str, Any]) -> None:
    hub = composition["services"]["hub"]
    volumes = [each.split(":") for each in hub["volumes"]]
    assert volumes == [["data", "/data"]]
    assert "data" in composition["volumes"]
    assert of_kind("VOLUME", stages()[-1]) == ['["/data"]']


def test_the_hub_alone_is_published_to_this_machine_only() -> None:
    ports = read("compose.yaml")["services"]["hub"]["ports"]
    assert all(each.startswith("127.0.0.1:") for each in ports)


def test_with_a_server_only_the_proxy_is_published_and_trusted() -> None:
    found = read("compose.postgres.yaml")
    services = found["services"]
    assert [name for name, each in services.items() if "ports" in each] == ["caddy"]
    assert found["networks"]["back"]["internal"]
    assert services["postgres"]["networks"] == ["back"]
    [front] = found["networks"]["front"]["ipam"]["config"]
    trusted = services["hub"]["environment"]["FANFARE_TRUSTED_PROXIES"]
    assert trusted == front["subnet"]


def test_each_service_has_no_more_rights_than_it_needs(
    composition: dict[str, Any],
) -> None:
    for service in composition["services"].values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        if "build" not in service:
            assert re.fullmatch(r"[\w./-]+:\d[\w.-]+", service["image"])


def test_the_hub_and_its_server_agree_on_the_database() -> None:
    services = read("compose.postgres.yaml")["services"]
    hub, server = services["hub"], services["postgres"]
    url = urlsplit(hub["environment"]["FANFARE_DATABASE"])
    given = server["environment"]
    assert url.hostname == "postgres"
    assert url.username == given["POSTGRES_USER"]
    assert url.path == f"/{given['POSTGRES_DB']}"
    assert url.query == f"password_file={given['POSTGRES_PASSWORD_FILE']}"
    assert hub["secrets"] == server["secrets"] == ["postgres-password"]
    assert hub["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_the_proxy_is_told_by_its_example_what_it_is_given() -> None:
    caddy = read("compose.postgres.yaml")["services"]["caddy"]
    source, target, _ = caddy["volumes"][0].split(":")
    example = (FOLDER / source).read_text()
    assert target == "/etc/caddy/Caddyfile"
    named = set(re.findall(r"\{\$(\w+)", example))
    assert named == caddy["environment"].keys()


def test_every_volume_is_declared(composition: dict[str, Any]) -> None:
    used = {
        each.split(":")[0]
        for service in composition["services"].values()
        for each in service["volumes"]
        if not each.startswith(".")
    }
    assert used == composition["volumes"].keys()


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


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="Compose is missing")
@pytest.mark.parametrize("name", ["compose.yaml", "compose.postgres.yaml"])
def test_compose_reads_it(name: str, tmp_path: Path) -> None:
    """Debian's Compose 1.29 knows no ``name`` of a project, as later ones do."""
    _, _, text = (FOLDER / name).read_text().partition("\nname: ")
    (tmp_path / name).write_text(text.partition("\n")[2])
    read = subprocess.run(
        [
            *("docker-compose", "--project-directory", str(FOLDER)),
            *("--file", str(tmp_path / name), "config"),
        ],
        env={**os.environ, "FANFARE_DOMAIN": "hub.example"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    assert "dockerfile: scripts/container/Dockerfile" in read.stdout
