from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in the wheel that is built from this tree."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)),
        cwd=ROOT,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    [built] = target.glob("fanfare_hub-*.whl")
    return zipfile.ZipFile(built).namelist()


def test_the_wheel_has_three_packages_and_nothing_else(wheel: list[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "hub",
        "protocols",
        "storage",
    }


def test_the_wheel_has_the_migrations(wheel: list[str]) -> None:
    in_tree = {
        str(path.relative_to(ROOT)) for path in (ROOT / "storage").rglob("*.sql")
    }
    assert in_tree
    assert in_tree <= set(wheel)


def test_the_wheel_has_the_pages_and_their_files(wheel: list[str]) -> None:
    folders = [ROOT / "hub" / "web" / each for each in ("assets", "templates")]
    in_tree = {str(p.relative_to(ROOT)) for each in folders for p in each.iterdir()}
    assert len(in_tree) > 10
    assert in_tree <= set(wheel)


def test_the_wheel_has_the_licence_and_the_command(wheel: list[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    assert any(name.endswith("entry_points.txt") for name in wheel)


def test_the_constraints_have_a_version_of_every_dependency_that_fits() -> None:
    pinned = {
        canonicalize_name(name): version
        for name, version in re.findall(
            r"^([\w.-]+)==(\S+)$",
            (ROOT / "scripts" / "constraints.txt").read_text(),
            re.MULTILINE,
        )
    }
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    extras = project["project"]["optional-dependencies"].values()
    wanted = [
        *project["project"]["dependencies"],
        *chain.from_iterable(extras),
        *project["dependency-groups"]["dev"],
    ]
    for requirement in map(Requirement, wanted):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), "scripts/lock"


def test_what_pages_load_is_small() -> None:
    files = [each for each in (ROOT / "hub/web/assets").iterdir() if each.is_file()]
    assert sum(len(gzip.compress(each.read_bytes())) for each in files) < 15_000
