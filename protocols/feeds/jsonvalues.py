"""Read values of the expected type from arbitrary JSON.

A member that is absent or null is read as an empty value; one of another type as well,
and it is noted. ``place`` is the JSON pointer of the object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from protocols.feeds.extensions import Json
from protocols.feeds.limits import MAX_EXTENSION_DEPTH, MAX_JSON_DEPTH
from protocols.languages import language_tag
from protocols.protocol_errors import LimitExceeded, MalformedDocument
from protocols.urls import is_web_url, resolve


def load_json(body: bytes) -> Json:
    """Decode UTF-8. Raises `MalformedDocument` and `LimitExceeded`."""
    try:
        document: Json = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth limit" in error.msg:
            raise LimitExceeded("the depth of nested JSON", MAX_JSON_DEPTH) from None
        raise MalformedDocument(
            f"not JSON: {error.msg}", error.lineno, error.colno
        ) from None
    return document


def shallow(value: Json, depth: int = MAX_EXTENSION_DEPTH) -> Json:
    """A value without what is nested deeper than ``depth``, which no renderer
    follows.
    """
    if type(value) is dict and depth:
        return {name: shallow(each, depth - 1) for name, each in value.items()}
    if type(value) is list and depth:
        return [shallow(each, depth - 1) for each in value]
    return None if type(value) in (dict, list) else value


def text_of(holder: dict[str, Json], name: str) -> str:
    value = holder.get(name)
    return value.strip() if type(value) is str else string_of(value)


def string_of(value: Json) -> str:
    """A text or number as text, since ids and sizes may be either; "" for other
    values.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def list_of(holder: dict[str, Json], name: str) -> list[Json]:
    value = holder.get(name)
    return value if isinstance(value, list) else []


def objects_of(holder: dict[str, Json], name: str) -> list[dict[str, Json]]:
    return [each for each in list_of(holder, name) if isinstance(each, dict)]


_ISO_8601: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
    r"(?P<zone>[Zz]|[-+]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
Members = dict[str, Json]


@dataclass(slots=True)
class Notes:
    """What is wrong with a document: lines for people, each with its place."""

    lines: list[str] = field(default_factory=list)

    def add(self, place: str, rule: str) -> None:
        self.lines.append(f"{place}: {rule}")


def text(holder: Members, name: str, place: str, notes: Notes) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        notes.add(f"{place}/{name}", "expected a text; left out")
        return ""
    return value.strip()


def language(holder: Members, place: str, notes: Notes) -> str:
    """The language tag for the member ``language``; "" if it names none."""
    written = text(holder, "language", place, notes)
    tag = language_tag(written)
    if written and not tag:
        notes.add(f"{place}/language", "expected a language; left out")
    return tag


def flag(
    holder: Members, name: str, place: str, notes: Notes, *, default: bool
) -> bool:
    value = holder.get(name)
    if value is None or isinstance(value, bool):
        return default if value is None else value
    notes.add(f"{place}/{name}", "expected true or false; left out")
    return default


def number(holder: Members, name: str, place: str, notes: Notes) -> int | float | None:
    """A number of 0 or more; None if the member is absent or invalid."""
    value = holder.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value < 0:  # type: ignore[operator]
        notes.add(f"{place}/{name}", "expected a number from 0 on; left out")
        return None
    return value  # type: ignore[return-value]


def members(holder: Members, name: str, place: str, notes: Notes) -> Members:
    value = holder.get(name)
    if value is None or isinstance(value, dict):
        return value or {}
    notes.add(f"{place}/{name}", "expected an object; left out")
    return {}


def values(holder: Members, name: str, place: str, notes: Notes) -> list[Json]:
    value = holder.get(name)
    if value is None or isinstance(value, list):
        return value or []
    notes.add(f"{place}/{name}", "expected an array; left out")
    return []


def web_url(holder: Members, name: str, place: str, notes: Notes) -> str:
    value = holder.get(name)
    url = absolute_url(value)
    if value is not None and not url:
        notes.add(f"{place}/{name}", "expected an absolute URL; left out")
    return url


def absolute_url(value: Json) -> str:
    """An http or https URL; "" for anything else."""
    url = resolve(value, "") if isinstance(value, str) else ""
    return url if is_web_url(url) else ""


def read_time(value: Json) -> tuple[datetime | None, bool]:
    """An ISO 8601 time in UTC, and whether it names its zone; without one UTC is
    assumed.

    (None, False) if it is not a time.
    """
    match = _ISO_8601.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None, False
    try:
        time = datetime.fromisoformat(match[0])
        has_zone = time.tzinfo is not None
        utc = time.astimezone(UTC) if has_zone else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None, False  # such as a thirteenth month, or the year 10000 in UTC
    return utc, has_zone
