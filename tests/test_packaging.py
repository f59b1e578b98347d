from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hub

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from this tree."""
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> list[str]:
    """The names of the files in it."""
    return zipfile.ZipFile(built).namelist()


def wheel_of(tree: Path, target: Path) -> Path:
    [path] = WheelBuilder(str(tree)).build(directory=str(target))
    return Path(path)


def sdist_of(tree: Path, target: Path) -> Path:
    [path] = SdistBuilder(str(tree)).build(directory=str(target))
    return Path(path)


def test_the_wheel_has_its_packages_and_nothing_else(
    wheel: list[str],
) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "fanfare_client",
        "hub",
        "protocols",
        "storage",
    }
    assert "fanfare_client/py.typed" in wheel


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


def test_the_same_tree_makes_the_same_bytes(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for each in ("hub/web/assets", "protocols/http", "storage/sqlite/migrations"):
        shutil.copytree(ROOT / each, tree / each)
    for each in (
        "hub/__init__.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ):
        shutil.copy(ROOT / each, tree / each)
    sdist, wheel = (build(tree, tmp_path / "first") for build in (sdist_of, wheel_of))
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    for path in unpacked.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_900_000_000, 1_900_000_000))
    assert sdist_of(unpacked, tmp_path / "again").read_bytes() == sdist.read_bytes()
    assert wheel_of(unpacked, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_version_is_the_hubs_own(built: Path) -> None:
    assert built.name.startswith(f"fanfare_hub-{hub.__version__}-")
    assert project()["project"]["dynamic"] == ["version"]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned_versions() -> dict[str, str]:
    text = (ROOT / "scripts" / "constraints.txt").read_text()
    pins = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("name", ["uvicorn", "websockets"])
def test_a_package_whose_private_parts_are_used_is_held_to_its_series(
    name: str,
) -> None:
    dependencies = map(Requirement, project()["project"]["dependencies"])
    [bounds] = (each.specifier for each in dependencies if each.name == name)
    major, minor = map(int, pinned_versions()[name].split(".")[:2])
    assert bounds.contains(f"{major}.{minor}.99")
    assert not bounds.contains(f"{major}.{minor + 1}")


def test_the_constraints_have_a_version_of_every_dependency_that_fits() -> None:
    pinned = pinned_versions()
    declared = project()
    extras = declared["project"]["optional-dependencies"].values()
    wanted = [
        *declared["project"]["dependencies"],
        *chain.from_iterable(extras),
        *chain.from_iterable(declared["dependency-groups"].values()),
    ]
    for requirement in map(Requirement, wanted):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), "scripts/lock"


def test_the_changelog_is_kept_in_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    for each in versions[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each)
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {
        *("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"),
    }


def test_every_change_is_whole_and_told_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    changes = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    assert len(set(changes)) == len(changes) > 100
    assert [each for each in changes if each[-1] not in ".)"] == []


def test_what_pages_load_is_small() -> None:
    files = [each for each in (ROOT / "hub/web/assets").iterdir() if each.is_file()]
    assert sum(len(gzip.compress(each.read_bytes())) for each in files) < 15_000
