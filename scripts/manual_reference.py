"""What the manual's reference has of the code.

    .venv/bin/python -m scripts.manual_reference

writes the tables of settings, metrics, commands, operations, routes of pages and types
of problems into their pages. What is too
long to be kept with the pages, the help of each command and each operation of the API,
is put into them when the manual is built, in the place of ``<!-- commands -->`` and
``<!-- operations -->``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

import click

from hub.cli import main
from hub.settings import SETTINGS
from hub.web.api.api_descriptions import (
    ApiReader,
    DescribedMember,
    DescribedOperation,
    TypeDescription,
    TypeWords,
)
from hub.web.api.openapi import openapi_document
from hub.web.operation import HTML, Operation, every_operation
from hub.web.problem_types import EXPLANATIONS
from protocols.prometheus import MetricFamily
from scripts.manual_contents import DOCS
from scripts.monitoring.__main__ import read_registry

WIDTH: Final = 88
"""Columns of a command's help."""
SERVE: Final = "fanfare serve"
"""Its options are the settings, which have a page."""

_LITERAL: Final = re.compile(r"(`[^`]*`)")


def settings_table() -> str:
    rows = (
        f"| `{each.variable}` | {each.shown_default} | {each.help} |\n"
        for each in SETTINGS
    )
    return "| variable | default | |\n|---|---|---|\n" + "".join(rows)


def problems_table() -> str:
    rows = (f"| `{type}` | {text} |\n" for type, text in EXPLANATIONS.items())
    return "| type, below `/problems/` | |\n|---|---|\n" + "".join(rows)


def metrics_table() -> str:
    rows = (
        f"| `{each.name}` | {each.kind} | {labels_of(each)} | {each.help} |\n"
        for each in asyncio.run(read_registry())
    )
    return "| metric | type | labels | |\n|---|---|---|---|\n" + "".join(rows)


def labels_of(family: MetricFamily) -> str:
    """Its labels with their values; the bounds of buckets and versions are none."""
    values: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label not in ("le", "version"):
                values.setdefault(label, {})[f"`{value}`"] = None
    return "; ".join(f"`{label}`: {', '.join(values[label])}" for label in values)


def commands_table() -> str:
    rows = (
        f"| `{in_cell(' '.join((name, *arguments_of(each))))}`"
        f" | {in_cell(in_words(with_literals(each.help or '')))} |\n"
        for name, each in all_commands()
    )
    return "| command | what it does |\n|---|---|\n" + "".join(rows)


def with_literals(help: str) -> str:
    """A help in one piece, with its options and variables as what one types."""
    return _beside_literals(
        r"(?<![\w-])(--[a-z-]+|FANFARE_[A-Z_]+…?)", r"`\1`", " ".join(help.split())
    )


def arguments_of(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    for each in command.params:
        if isinstance(each, click.Argument):
            yield each.make_metavar(context)


def operations_table() -> str:
    """All of the API and of what is open, in the order of the document."""
    rows = []
    for path, methods in openapi_document()["paths"].items():
        for method, each in methods.items():
            scope = re.search(r"Requires the (`\w+`) scope", each["description"])
            rows.append(
                f"| `{method.upper()} {path}` | {scope[1] if scope else ''}"
                f" | {in_cell(each['summary'])} |\n"
            )
    return "| operation | scope | |\n|---|---|---|\n" + "".join(rows)


def pages_table() -> str:
    """Pages, and what is on them and no document describes: forms, files."""
    import_module("hub.web.application")  # declares them all
    described = openapi_document()["paths"]
    rows = (
        f"| `{each.method} {each.path}` | {in_cell(page_words(each))} |\n"
        for each in sorted(every_operation(), key=lambda it: it.path)
        if HTML in contents_of(each)
        or (each.path not in described and f"/api{each.path}" not in described)
    )
    return "| route | |\n|---|---|\n" + "".join(rows)


def contents_of(operation: Operation) -> list[str]:
    """The media types of its answers."""
    each = operation.answers.values()
    return [type for it in each if isinstance(it, Mapping) for type in it]


def page_words(operation: Operation) -> str:
    return f"{operation.summary}. {in_words(operation.description)}".strip(". ")


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/settings.md": settings_table,
    "reference/metrics.md": metrics_table,
    "reference/cli.md": commands_table,
    "reference/http-api.md": operations_table,
    "reference/page-routes.md": pages_table,
    "reference/errors.md": problems_table,
}
"""By page: its table that begins with the same line."""


def with_table(page: str, table: str) -> str:
    """A page with this table in the place of the one with the same head."""
    head = re.escape(table.partition("\n")[0])
    return re.sub(rf"(?m)^{head}\n(?:\|.*\n)+", lambda _: table, page)


def with_made_parts(page: str) -> str:
    """A page with all that is made of the code when the manual is built."""
    for mark, make in MADE.items():
        if mark in page:
            page = page.replace(mark, make())
    return page


# --- commands ---


def commands_text() -> str:
    """The help of each command under a heading."""
    return "\n".join(
        f"## {name}\n\n{command_text(name, command)}"
        for name, command in all_commands()
    )


def all_commands(
    group: click.Group = main, path: str = "fanfare"
) -> Iterator[tuple[str, click.Command]]:
    """Each command that is no group, with its name in full."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from all_commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command


def command_text(name: str, command: click.Command) -> str:
    if name == SERVE:
        return "Run the hub. Its options are the [settings](settings.md).\n"
    context = click.Context(command, info_name=name, max_content_width=WIDTH)
    context.terminal_width = WIDTH
    return f"```text\n{command.get_help(context)}\n```\n"


# --- operations of the API ---


def operations_text() -> str:
    """Each operation by its part of the API, and then all types that they name."""
    reader = ApiReader(openapi_document(), "http://localhost:8080")
    parts, types = [], {}
    for tag in reader.tags():
        page = reader.page(tag)
        types.update({each.name: each for each in page.types})
        texts = (operation_text(each) for each in page.operations)
        parts.append(f"## {page.meaning}\n\n" + "\n".join(texts))
    parts.append(
        "## Types\n\n" + "\n".join(type_text(types[it]) for it in sorted(types))
    )
    return "\n".join(parts)


def operation_text(operation: DescribedOperation) -> str:
    lines = [
        f"### {operation.method} {in_words(operation.path)}",
        f"{operation.summary} (`{operation.id}`). {in_words(operation.description)}",
        *member_rows("parameter", operation.parameters),
        *member_rows("field of the form", operation.fields),
    ]
    if operation.body is not None:
        lines.append(f"Body: {type_words(operation.body)}")
    for answer in operation.answers:
        contents = (
            f"{type_words(words)} (`{media_type}`)"
            for media_type, words in answer.contents
        )
        said = "; or ".join(contents)
        phrase = f"{answer.status} {answer.phrase}"
        lines.append(f"{phrase}: {said}" if said else phrase)
    return "\n\n".join(lines) + "\n"


def type_text(type: TypeDescription) -> str:
    choices = ", ".join(f"`{each}`" for each in type.choices if each)
    lines = [
        f"### {type.name}",
        in_words(type.description),
        f"One of {choices}." if choices else "",
        *member_rows("member", type.members),
    ]
    return "\n\n".join(filter(None, lines)) + "\n"


def member_rows(title: str, members: Sequence[DescribedMember]) -> Iterable[str]:
    """A table of members in one piece, or nothing."""
    if not members:
        return
    rows = (
        f"| `{each.name}`{' (former)' if each.is_deprecated else ''} "
        f"| {type_words(each.type)} | {in_cell(in_words(each.help))} |"
        for each in members
    )
    yield "\n".join((f"| {title} | type | |", "|---|---|---|", *rows))


def type_words(words: TypeWords) -> str:
    """With a link to the type that they name."""
    link = f"[{it}](#{it.lower()})" if (it := words.reference) else ""
    return in_cell(f"{in_words(words.before)}{link}{in_words(words.after)}")


def in_words(text: str) -> str:
    """Text for Markdown: what is no literal is only text."""
    return _beside_literals(r"([\\*_<>\[\]{}])", r"\\\1", text)


def _beside_literals(pattern: str, replacement: str, text: str) -> str:
    return "".join(
        each if number % 2 else re.sub(pattern, replacement, each)
        for number, each in enumerate(_LITERAL.split(text))
    )


def in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


MADE: Final[Mapping[str, Callable[[], str]]] = {
    "<!-- commands -->\n": commands_text,
    "<!-- operations -->\n": operations_text,
}


if __name__ == "__main__":
    for path, make in TABLES.items():
        page = DOCS / path
        page.write_text(with_table(page.read_text(), make()))
