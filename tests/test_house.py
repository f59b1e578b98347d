"""The order of the house: one name, one thing, and a map that is true.

docs/architecture.md is what a newcomer reads first, so its table of folders, its eight
steps and its answers to "where do I change X" are held against the tree.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("protocols", "storage", "hub")
MAP = (ROOT / "docs" / "architecture.md").read_text()
MIRRORS = (
    *("storage/records", "storage/contract", "storage/sqlite", "storage/postgres"),
)
"""An engine's file has the name of its contract's, and of the records it is about."""
SHORT = 80
"""Lines. A shorter module that one other imports is part of that one."""
APART = {
    "hub/core/schedule/feed_retirement.py": "a rule that people look for",
    "hub/web/admin/push_hub_pages.py": "a page of its own",
    "hub/web/admin/setting_pages.py": "a page of its own",
    "hub/delivery/event_publisher.py": "a background task of its own",
    "hub/web/admin/attempt_sparkline.py": "pure, and the page is not",
    "hub/limits/fifo_semaphore.py": "every limiter is in its folder",
    "hub/limits/host_circuit_breaker.py": "every limiter is in its folder",
    "hub/limits/memory_budget.py": "every limiter is in its folder",
    "hub/web/multipart_forms.py": "pure, and the access is not",
    "storage/postgres/series.py": "an engine's file of a contract",
    "storage/postgres/sites.py": "an engine's file of a contract",
    "storage/postgres/stored_runs.py": "an engine's file of a contract",
    "storage/sqlite/series.py": "an engine's file of a contract",
    "storage/sqlite/membership.py": "an engine's file of a contract",
}
"""Short modules that one other imports, and why they are their own all the same."""


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


def importers() -> dict[Path, set[Path]]:
    """By module, whatever imports it, faces of packages included."""
    by_name = {name_of(module): module for module in modules()}
    found: dict[Path, set[Path]] = {module: set() for module in by_name.values()}
    for module in by_name.values():
        for package, name in taken_by(module):
            source = by_name.get(f"{package}.{name}") or by_name.get(package)
            if source not in (None, module):
                found[source].add(module)
    return found


def name_of(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def taken_by(module: Path) -> Iterator[tuple[str, str]]:
    """What it imports: a module, and what it takes from there."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)


def test_templates_use_what_they_take_from_others() -> None:
    taking = re.compile(r"({% from \S+ import (.+?) with context %})")
    for template in sorted((ROOT / "hub" / "web" / "templates").glob("*.html")):
        text = template.read_text()
        for line, names in taking.findall(text):
            used = set(re.findall(r"\b(\w+)\(", text.replace(line, "")))
            taken = {each.rpartition(" as ")[2] for each in names.split(", ")}
            assert taken - used == set(), template.name


def test_no_module_is_imported_by_what_it_imports() -> None:
    imports = defaultdict(set)
    for module, others in importers().items():
        for each in others:
            imports[each].add(module)
    graph = TopologicalSorter(imports)

    graph.prepare()  # raises CycleError, which names them


def test_a_short_module_has_several_importers_or_a_reason() -> None:
    alone = {
        path_of(module)
        for module, others in importers().items()
        if len(others) == 1 and is_short(module) and not is_face(module, others)
    }

    assert alone == APART.keys()


def is_short(module: Path) -> bool:
    return len(module.read_text().splitlines()) < SHORT


def is_face(module: Path, others: set[Path]) -> bool:
    """Whether it is what a package shows, or a part of that."""
    face = module.with_name("__init__.py")
    return module == face or face in others


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
