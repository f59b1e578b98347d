"""Golden documents: ``tests/data/<format>/NAME`` and what is read from it, beside.

``python -m tests.support.golden`` writes every ``NAME.json`` anew from what the parser
makes of its document now. Read the difference before keeping it: the files are the
specification, and a parser that changes them changes what subscribers get.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently

DATA = Path(__file__).parent.parent / "data"
FORMATS = ("rss", "rdf", "atom", "jsonfeed", "creator")
CONTEXT = ParseContext(
    url="https://site.example/feeds/main.xml", now=datetime(2026, 5, 1, tzinfo=UTC)
)


def golden_documents() -> list[Path]:
    """Every document; JSON Feeds end in ``.feed.json``, to differ from readings."""
    return sorted(
        path
        for format in FORMATS
        for path in (DATA / format).iterdir()
        if path.suffix == ".xml" or path.name.endswith(".feed.json")
    )


def reading_path(document: Path) -> Path:
    return document.with_name(document.name.partition(".")[0] + ".json")


def reading(document: Path) -> Any:
    """A `ParsedFeed` as JSON, without what is empty."""
    return _plain(parse_leniently(document.read_bytes(), CONTEXT))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        named = {
            each.name: getattr(value, each.name)
            for each in fields(value)
            if (each.default, getattr(value, each.name)) != (0, 0)  # nothing counted
        }
        return {name: _plain(each) for name, each in named.items() if _says_much(each)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _says_much(value: Any) -> bool:
    is_empty_dataclass = is_dataclass(value) and not _plain(value)
    return value not in ("", None, (), {}) and not is_empty_dataclass


def main() -> None:
    for document in golden_documents():
        text = json.dumps(reading(document), indent=2, ensure_ascii=False)
        reading_path(document).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
