"""Lists of subscriptions from elsewhere, for imports.

Answers of ``hub.mode=list``, saved page by page into one file or several; JSON objects,
one a line or not; or a CSV table. Each subscription has a topic and a callback, and may
have a format and a secret.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from protocols.protocol_errors import InvalidValue

_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "topic": ("topic", "hub.topic", "feed", "feed.url", "url"),
    "callback": ("callback", "hub.callback", "endpoint", "endpoint.url"),
    "format": ("format",),
    "secret": ("secret", "hub.secret"),
}
"""The names of each member or column, the usual one first."""
_COLUMNS: Final = ("topic", "callback", "format", "secret")
"""The columns of a table without a heading."""
_FORMATS: Final[Mapping[str, str]] = {
    "": "",
    "atom": "atom",
    "json": "json",
    "as-is": "as-is",
    "by-topic": "by-topic",
    "raw": "as-is",
}
_EXPECTED: Final = "subscriptions as JSON, JSON Lines or CSV with topic and callback"
_Members: TypeAlias = Mapping[str, Any]


class WrittenSubscription(Struct, frozen=True, kw_only=True):
    """One subscription of the file; ``place`` is its position, for people.

    ``format`` is one that the hub sends, or "" if none is given. ``fault`` says why it
    cannot be read; "" if it can.
    """

    place: str
    topic: str = ""
    callback: str = ""
    format: str = ""
    secret: str = ""
    fault: str = ""


def read_subscriptions(text: str) -> Iterator[WrittenSubscription]:
    """Read subscriptions in the order of the file, whose beginning tells its form.

    Raises `InvalidValue` if it is no such file, possibly not before a later
    subscription.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("[", "{"):
        return _read_json(text)
    return _read_table(text)


def _read_json(text: str) -> Iterator[WrittenSubscription]:
    """Read any number of JSON documents: pages, or one subscription per line.

    An object that cannot be read is skipped with its line.
    """
    decoder = json.JSONDecoder()
    at, number = 0, 0
    while at < len(text):
        if text[at].isspace() or text[at] == ",":
            at += 1
            continue
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            line = text.count("\n", 0, at) + 1
            if text[at] != "{":
                expected = f"{_EXPECTED}; line {line} is not JSON"
                raise InvalidValue("file", expected) from None
            yield WrittenSubscription(place=f"line {line}", fault="expected JSON")
            number += 1
            at = (text.find("\n", at) + 1) or len(text)
            continue
        for each in _listed(document):
            number += 1
            yield _of_object(each, f"subscription {number}")


def _listed(document: object) -> Sequence[object]:
    if isinstance(document, Mapping) and isinstance(
        document.get("subscriptions"), list
    ):
        document = document["subscriptions"]
    return document if isinstance(document, list) else [document]


def _of_object(written: object, place: str) -> WrittenSubscription:
    if isinstance(written, Mapping) and isinstance(
        written.get("subscription"), Mapping
    ):
        written = written["subscription"]
    if not isinstance(written, Mapping):
        return WrittenSubscription(place=place, fault="expected an object")
    named = {name: _value(written, name) for name in _NAMES}
    return _checked(place, {**named, "topic": named["topic"] or _feed_url(written)})


def _feed_url(written: _Members) -> str:
    """The feed's URL; in detailed lists it is only at ``feed.status.feed``."""
    feed = written.get("feed")
    if not isinstance(feed, Mapping):
        return ""
    status = feed.get("status")
    address = status.get("feed") if isinstance(status, Mapping) else None
    for value in (feed.get("url"), address):
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _value(written: _Members, name: str) -> str:
    for each in _NAMES[name]:
        value = written.get(each)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _read_table(text: str) -> Iterator[WrittenSubscription]:
    """Read a table with or without a heading.

    Without one the order is topic, callback, format, secret. Cells are separated by
    commas, semicolons or tabs.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    columns: Sequence[str] = ()
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not columns:
                columns = _columns(cells)
                if columns is not _COLUMNS:
                    continue
            named = dict(zip(columns, cells, strict=False))
            yield _checked(f"line {rows.line_num}", named)
    except csv.Error as error:
        expected = f"{_EXPECTED}; line {rows.line_num}: {error}"
        raise InvalidValue("file", expected) from None


def _columns(cells: Sequence[str]) -> Sequence[str]:
    """The columns that a table's first row names. Raises `InvalidValue`."""
    if cells[0].lower().startswith(("http://", "https://")):
        return _COLUMNS
    known = {each: name for name, names in _NAMES.items() for each in names}
    columns = [known.get(cell.lower(), "") for cell in cells]
    if not {"topic", "callback"} <= set(columns):
        raise InvalidValue("file", _EXPECTED)
    return columns


def _checked(place: str, named: Mapping[str, str]) -> WrittenSubscription:
    topic, callback = named.get("topic", ""), named.get("callback", "")
    written = named.get("format", "")
    format = _FORMATS.get(written.lower())
    fault = ""
    if not topic:
        fault = "topic: expected a URL"
    elif not callback:
        fault = "callback: expected a URL"
    elif format is None:
        fault = str(InvalidValue("format", "json, atom, as-is or by-topic", written))
    return WrittenSubscription(
        place=place,
        topic=topic,
        callback=callback,
        format=format or "",
        secret=named.get("secret", ""),
        fault=fault,
    )
