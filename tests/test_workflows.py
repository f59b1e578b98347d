"""The forms and workflows of the repository's host."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage.postgres.opening import LEAST_SERVER
from tests.support.postgres_server import OTHER_SERVER

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    "form",
    [each for each in FORMS if each.name != "config.yml"],
    ids=lambda it: it.stem,
)
def test_a_form_asks_for_something(form: Path) -> None:
    found = read(form)
    assert found["name"]
    assert found["description"]
    ids = [each["id"] for each in found["body"] if each["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    assert all(each["attributes"]["label"] for each in found["body"] if "id" in each)


def test_every_python_that_the_project_names_is_tested() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [
        each.removeprefix("Programming Language :: Python :: ")
        for each in project["classifiers"]
        if each.startswith(prefix)
    ]
    job = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["run"]
    assert job["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    assert any(".ci/run" in step.get("run", "") for step in job["steps"])


def test_every_postgresql_from_the_least_on_is_tested() -> None:
    job = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["postgres"]
    versions = [int(each) for each in job["strategy"]["matrix"]["postgres"]]
    assert versions == list(range(LEAST_SERVER // 10_000, versions[-1] + 1))
    assert OTHER_SERVER in job["env"]
    (run,) = [each["run"] for each in job["steps"] if "scripts/test" in str(each)]
    for folder in run.split()[2:]:
        assert (ROOT / folder).exists(), folder
