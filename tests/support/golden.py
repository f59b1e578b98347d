"""Golden documents: ``tests/data/<format>/NAME``, each with what is read from it.

``python -m tests.support.golden`` writes every ``NAME.json`` anew from what the parser
makes of its document now. Read the difference before keeping it: the files are the
specification, and a parser that changes them changes what subscribers get.

There are also readers of Atom documents for tests: strict, by prefix, and with
extensions as JSON.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from lxml import etree
from msgspec import Struct, structs

from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.openfeeder.read.site_answers import (
    ListedItem,
    read_front,
    read_listing,
    read_page,
)
from protocols.openfeeder.read.site_entries import entry_of
from protocols.opml import read_outlines
from protocols.scp.read.collection_entries import entry_of_page
from protocols.scp.read.collection_heads import HeadRules
from protocols.scp.read.collection_reader import CollectionReader
from protocols.scp.read.sitemap_reader import read_sitemap

PREFIXES = {
    "atom": "http://www.w3.org/2005/Atom",
    "dcterms": "http://purl.org/dc/terms/",
    "as": "http://activitystrea.ms/spec/1.0/",
    "at": "http://purl.org/atompub/tombstones/1.0",
    "ext": "urn:fanfare:extensions",
    "geo": "http://www.georss.org/georss",
    "sf": "http://superfeedr.com/xmpp-pubsub-ext",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_xml(document: bytes) -> Any:
    """The root. Raises `lxml.etree.XMLSyntaxError` for what is not well-formed."""
    return etree.fromstring(document)


def find(element: Any, path: str) -> list[Any]:
    return list(element.iterfind(path, PREFIXES))


def texts(element: Any, path: str) -> list[str]:
    return [each.text or "" for each in find(element, path)]


def attributes(element: Any, path: str) -> list[dict[str, str]]:
    return [dict(each.attrib) for each in find(element, path)]


def read_extensions(element: Any) -> dict[str, Any]:
    """The extensions of an element, as the inverse of writing them; {} without any."""
    found = find(element, "ext:extensions")
    return {each.get("name"): _value(each) for node in found for each in node}


def _value(element: Any) -> Any:
    text = element.text or ""
    match element.get("type"):
        case "object":
            return {each.get("name"): _value(each) for each in element}
        case "list":
            return [_value(each) for each in element]
        case "number":
            return float(text) if set(text) - set("-0123456789") else int(text)
        case "boolean":
            return text == "true"
        case "null":
            return None
        case _:
            return text


DATA = Path(__file__).parent.parent / "data"
FORMATS = ("rss", "rdf", "atom", "jsonfeed", "creator")
CONTEXT = ParseContext(
    url="https://site.example/feeds/main.xml", now=datetime(2026, 5, 1, tzinfo=UTC)
)


def golden_documents() -> list[Path]:
    """Every document. JSON Feeds end in ``.feed.json``, unlike readings."""
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


# --- documents that are no feeds -----------------------------------------------------


def _collection(body: bytes) -> Any:
    reader = CollectionReader(HeadRules(now=CONTEXT.now))
    pages = [*reader.feed(body), *reader.finish()]
    entries = [entry_of_page(each, reader.warnings) for each in pages]
    return [reader.head, entries, reader.warnings.lines]


def _page(body: bytes) -> Any:
    page = read_page(body, CONTEXT.url)
    listed = ListedItem(reference="/a", url=page.url, digest=0, title="Listed")
    return [page, entry_of(listed, page, "en")]


OTHERS: Mapping[str, Callable[[bytes], Any]] = {
    "openfeeder/discovery.document.json": lambda body: read_front(body, CONTEXT.url),
    "openfeeder/index.document.json": lambda body: read_listing(body, CONTEXT.url),
    "openfeeder/changes.document.json": lambda body: read_listing(body, CONTEXT.url),
    "openfeeder/page.document.json": _page,
    "opml/complete.opml": lambda body: read_outlines(body, CONTEXT.url),
    "scp/complete.scp": _collection,
    "scp/complete.sitemap.xml": lambda body: read_sitemap(body, CONTEXT.url),
}
"""Documents that lead to entries, by their paths, and the function that reads each."""


def other_reading(path: str) -> Any:
    return _plain(OTHERS[path]((DATA / path).read_bytes()))


def other_reading_path(path: str) -> Path:
    document = DATA / path
    return document.with_name(f"{document.name}.reading.json")


def _plain(value: Any) -> Any:
    if _is_record(value):
        named = {
            each.name: getattr(value, each.name)
            for each in _fields(value)
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
    is_empty_record = _is_record(value) and not _plain(value)
    return value not in ("", None, (), {}) and not is_empty_record


def _is_record(value: Any) -> bool:
    return isinstance(value, Struct) or dataclasses.is_dataclass(value)


def _fields(value: Any) -> Iterable[Any]:
    is_struct = isinstance(value, Struct)
    return structs.fields(value) if is_struct else dataclasses.fields(value)


def main() -> None:
    for document in golden_documents():
        text = json.dumps(reading(document), indent=2, ensure_ascii=False)
        reading_path(document).write_text(text + "\n", encoding="utf-8")
    for path in OTHERS:
        text = json.dumps(other_reading(path), indent=2, ensure_ascii=False)
        other_reading_path(path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
