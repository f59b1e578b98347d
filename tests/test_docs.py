"""The reference names all there is: settings, routes, commands and their options."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import cast

import pytest
import yaml
from starlette.applications import Starlette
from starlette.routing import Mount, Route, WebSocketRoute

from hub.services import Services
from hub.settings import SETTINGS
from hub.web.api.openapi import openapi_document
from hub.web.application import create_application
from scripts.manual_contents import llms_text, read_contents
from scripts.manual_reference import (
    MADE,
    TABLES,
    all_commands,
    with_literals,
    with_made_parts,
)

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


def routes(application: Starlette) -> Iterator[str]:
    for route in application.routes:
        if isinstance(route, Mount):
            yield from (f"{m} {route.path}{p}" for m, p in map(described, route.routes))
        else:
            yield " ".join(described(route))


def described(route: object) -> tuple[str, str]:
    if isinstance(route, WebSocketRoute):
        return "websocket", route.path
    assert isinstance(route, Route)
    assert route.methods is not None
    return next(iter(route.methods - {"HEAD"})), route.path


@pytest.mark.parametrize("page", TABLES)
def test_a_table_is_what_the_code_says(page: str) -> None:
    """`python -m scripts.manual_reference` writes them."""
    assert f"{TABLES[page]()}\n" in (ROOT / "docs" / page).read_text() + "\n"


def test_what_is_code_in_a_help_has_no_code_within() -> None:
    said = with_literals("`fanfare subs list --state over`; --all, FANFARE_PORT")
    assert said == "`fanfare subs list --state over`; `--all`, `FANFARE_PORT`"


def test_the_manual_has_every_command_and_operation() -> None:
    text = with_made_parts("".join(MADE))
    for name, _ in all_commands():
        assert f"\n## {name}\n" in f"\n{text}", name
    for methods in openapi_document()["paths"].values():
        for operation in methods.values():
            assert f"(`{operation['operationId']}`)" in text


def test_the_reference_names_no_setting_there_is_not() -> None:
    text = (REFERENCE / "settings.md").read_text() + (ROOT / "README.md").read_text()
    known = {each.variable for each in SETTINGS}
    known |= {f"{each.variable}_FILE" for each in SETTINGS if each.is_secret}
    assert set(re.findall(r"FANFARE_[A-Z_]+[A-Z]", text)) <= known


@pytest.mark.parametrize("name", ["RetryingSubscription", "DeadLetter"])
def test_every_member_of_a_failed_delivery_is_in_the_reference(name: str) -> None:
    text = (REFERENCE / "delivery-reports.md").read_text()
    title = "Retrying subscriptions and dead letters"
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    schema = openapi_document()["components"]["schemas"][name]
    assert {f"`{member}`" for member in schema["properties"]} <= set(
        re.findall(r"`\w+`", section)
    )


def test_every_route_is_in_the_reference() -> None:
    pages = ("http-api.md", "page-routes.md")
    text = "".join((REFERENCE / each).read_text() for each in pages)
    unused = cast("Services", NoServices())
    for route in routes(create_application(unused, "token")):
        assert f"`{route}`" in text


class NoServices:
    """Nothing is called while routes are only listed."""

    def __getattr__(self, name: str) -> NoServices:
        return self


@pytest.mark.parametrize(
    "document",
    ["explanation/etiquette.md", "reference/security-promises.md"],
)
def test_every_test_that_is_named_is_there(document: str) -> None:
    text = (ROOT / "docs" / document).read_text()
    for path in re.findall(r"`(tests/[\w/.]+?)`", text):
        assert (ROOT / path).exists(), path
    tests = "".join(each.read_text() for each in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests, name


PAGES = sorted(
    [
        *(ROOT / each for each in ("README.md", "CHANGELOG.md")),
        *(ROOT / ".github").glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_to_a_file_and_its_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    within = [each.partition("#") for each in links if "//" not in each]
    missing = [
        f"{path}#{anchor}"
        for path, _, anchor in within
        if not leads_somewhere(page.parent / path if path else page, anchor)
    ]
    assert missing == []


def leads_somewhere(target: Path, anchor: str) -> bool:
    if not target.exists():
        return False
    headings = re.findall(r"(?m)^#+ (.*)$", target.read_text() if anchor else "")
    return not anchor or anchor in map(as_anchor, headings)


def as_anchor(heading: str) -> str:
    """GitHub's: in lower case, without punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_the_manual_lists_every_page_once() -> None:
    sections = read_contents((ROOT / "docs" / "index.md").read_text())
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert sorted(page.path for each in sections for page in each.pages) == sorted(
        str(each.relative_to(ROOT / "docs")) for each in pages if each.stem != "index"
    )


def test_language_models_are_told_of_every_page() -> None:
    text = llms_text((ROOT / "docs" / "index.md").read_text())
    assert (ROOT / "docs" / "llms.txt").read_text() == text


COMMAND_LINE = re.compile(r"(?:^|.*[\s/])fanfare ([a-z].*)$")
STOPS = {"|", ">", ">>", "<", "&", "&&"}
"""Words that end a command in a shell."""


def command_lines(page: Path) -> Iterator[list[str]]:
    """Words of each line in an example that calls ``fanfare``."""
    blocks = re.findall(r"(?ms)^ *```sh\n(.*?)^ *```", page.read_text())
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        if found := COMMAND_LINE.match(line):
            words = shlex.split(found[1], comments=True)
            yield list(takewhile(lambda word: word not in STOPS, words))


def test_every_command_line_of_the_docs_is_one_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("urls.txt", "traces.json", "list.json", "secret.txt"):
        (tmp_path / name).touch()
    named = {name: command for name, command in all_commands()}
    lines = [each for page in PAGES for each in command_lines(page)]
    assert len(lines) > 50
    for words in lines:
        count = next(n for n in (2, 1) if " ".join(["fanfare", *words[:n]]) in named)
        command = named[" ".join(["fanfare", *words[:count]])]
        command.make_context(command.name, words[count:]).close()


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"(?ms)^ *```{language}\n(.*?)^ *```", page.read_text())


READABLE: Mapping[str, Callable[[str], object]] = {
    "json": lambda text: [json.loads(each) for each in documents_in(text)],
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "python": lambda text: compile(
        text, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    ),
    "sh": lambda text: subprocess.run(["sh", "-n"], input=text, text=True, check=True),
}


def documents_in(text: str) -> list[str]:
    """One document, or one a line."""
    lines = text.splitlines()
    return (
        lines
        if all(each.endswith("}") and each[0] == "{" for each in lines)
        else [text]
    )


@pytest.mark.parametrize("language", READABLE)
def test_every_example_can_be_read_as_what_it_is(language: str) -> None:
    examples = [each for page in PAGES for each in blocks_of(page, language)]
    assert examples
    if language == "sh":
        examples = ["\n".join(f"f() {{\n{each}\n}}" for each in examples)]
    for each in examples:
        READABLE[language](each)


def test_paths_and_extras_in_shell_examples_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "".join("".join(blocks_of(page, "sh")) for page in PAGES)
    extras = set(re.findall(r"fanfare-hub\[(\w+)\]", text))
    assert {"client", "opentelemetry", "postgres"} <= extras
    assert extras <= project["optional-dependencies"].keys()
    made = {"scripts/container/postgres-password"}
    for path in set(re.findall(r"(?:^|[\s/])(scripts/[\w./-]+)", text)) - made:
        assert (ROOT / path).exists() or path.endswith("fanfare."), path
