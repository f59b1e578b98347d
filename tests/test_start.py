"""The command says so if a package of others has the place of one of the hub's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import hub

ROOT = Path(__file__).parents[1]
PACKAGES = ("protocols", "storage")
START = "sys.argv = ['fanfare', 'version']; from hub.__main__ import main; main()"


def install(place: Path) -> None:
    """As much of the hub as is looked at before it starts."""
    place.mkdir()
    for name in ("hub", *PACKAGES):
        (place / name).mkdir()
        shutil.copy(ROOT / name / "__init__.py", place / name)
    shutil.copy(ROOT / "hub" / "__main__.py", place / "hub")


def install_foreign(name: str, place: Path) -> Path:
    path = place / name / "__init__.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("raise SystemExit('the foreign package was imported')\n")
    return path


def start(*on_path: Path) -> tuple[int, str]:
    """What the command answers, with these directories before all others."""
    code = f"import sys; sys.path[:0] = {[str(each) for each in on_path]}; {START}"
    return ended("-I", "-S", "-c", code)


def ended(
    *arguments: str, directory: Path = ROOT, variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    done = subprocess.run(
        (sys.executable, *arguments),
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_one_that_comes_before_ours_is_named(name: str, tmp_path: Path) -> None:
    install(tmp_path / "site-packages")
    foreign = install_foreign(name, tmp_path / "elsewhere")

    code, said = start(tmp_path / "elsewhere", tmp_path / "site-packages")

    assert code == 1
    assert f"fanfare: {foreign} is not the hub's package {name}\n" in said
    assert "uv tool install fanfare-hub" in said


def test_one_that_was_installed_over_ours_is_named(tmp_path: Path) -> None:
    install(tmp_path / "site-packages")
    foreign = install_foreign("storage", tmp_path / "site-packages")

    code, said = start(tmp_path / "site-packages")

    assert code == 1
    assert f"{foreign} is not the hub's package storage" in said


def test_one_of_ours_that_is_missing_is_named(tmp_path: Path) -> None:
    install(tmp_path / "site-packages")
    missing = tmp_path / "site-packages" / "protocols"
    shutil.rmtree(missing)

    code, said = start(tmp_path / "site-packages")

    assert code == 1
    assert f"protocols of the hub is missing: {missing / '__init__.py'}" in said


def test_python_m_hub_is_the_command() -> None:
    assert ended("-m", "hub", "--version") == (0, f"fanfare {hub.__version__}\n")


def test_python_m_hub_does_not_take_a_storage_on_the_path_for_its_own(
    tmp_path: Path,
) -> None:
    foreign = install_foreign("storage", tmp_path)
    paths = f"{tmp_path}:{ROOT}"

    code, said = ended(
        "-m", "hub", "serve", directory=Path("/"), variables={"PYTHONPATH": paths}
    )

    assert code == 1
    assert str(foreign) in said
