"""The order of the house: one name, one thing, and a map that is true.

docs/architecture.md is what a newcomer reads first, so its table of folders, its eight
steps and its answers to "where do I change X" are held against the tree.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("protocols", "storage", "hub")
MAP = (ROOT / "docs" / "architecture.md").read_text()
MIRRORS = ("storage/records", "storage/contract", "storage/sqlite")
"""An engine's file has the name of its contract's, and of the records it is about."""


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def scripts() -> Iterator[Path]:
    yield from sorted((ROOT / "scripts").rglob("*.py"))


def path_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def section(title: str) -> str:
    return MAP.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(table: str) -> list[str]:
    return re.findall(r"^\| `([\w/]+/)`", table, re.MULTILINE)


def test_every_folder_is_in_the_table_and_no_other() -> None:
    there = {f"{path_of(module.parent)}/" for module in modules()}

    assert set(first_column(section("Folders"))) == there | {"scripts/", "tests/"}


@pytest.mark.parametrize("title", ["An entry's way", "Where to change what"])
def test_every_file_that_the_map_names_has_what_it_says(title: str) -> None:
    named = re.findall(r"`([\w/]+\.(?:py|sql))(?:::([\w.]+))?`", section(title))

    assert len(named) >= 8
    for path, name in named:
        assert (ROOT / path).is_file(), path
        assert not name or name in defined_in(ROOT / path), f"{path} has no {name}"


def defined_in(module: Path) -> set[str]:
    """Names of its classes and functions, of methods with their class."""
    found = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each}" for each in functions_of(node)}
            found.add(node.name)
    return found | functions_of(ast.parse(module.read_text()))


def functions_of(node: ast.Module | ast.ClassDef) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in node.body if isinstance(each, kinds)}


def test_no_public_class_has_the_name_of_another() -> None:
    places = defaultdict(list)
    for module in (*modules(), *scripts()):
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path_of(module))

    assert {name: at for name, at in places.items() if len(at) > 1} == {}


def test_no_two_modules_have_the_same_name_unless_they_mirror_each_other() -> None:
    places = defaultdict(list)
    for module in modules():
        is_mirror = path_of(module.parent) in MIRRORS[1:]
        if not is_mirror and module.stem not in ("__init__", "__main__"):
            places[module.stem].append(path_of(module))

    assert {name: at for name, at in places.items() if len(at) > 1} == {}


@pytest.mark.parametrize("module", list(modules()), ids=path_of)
def test_no_docstring_has_a_sentence_cut_in_two(module: Path) -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            first, *others = text.split("\n\n")
            assert not others or first.rstrip()[-1] in '.:?!`)"', first
