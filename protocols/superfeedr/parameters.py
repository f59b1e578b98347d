"""Parameters of the Superfeedr-compatible API, in every form its clients send them.

Query and body are combined, whatever the method; the body takes precedence.
``search[feed][url]``, ``search[feed.url]`` and JSON's ``{"search": {"feed": {"url":
…}}}`` are all ``search.feed.url``; ``hub.url[]`` is a repeated ``hub.url``. Empty
parameters count as absent, and unknown names are ignored. Errors name the parameter at
fault.

Bodies are forms, multipart forms (curl's, from PHP) and JSON (from Node). Names and
values are read as written; JSON's members are joined by full stops, its lists repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import orjson

from protocols.http import parse_content_type
from protocols.protocol_errors import InvalidValue
from protocols.websub.callbacks import LONGEST_URL, read_web_url
from protocols.websub.websub_parameters import only_value, required_value

MOST_PARAMETERS: Final = 1_000
DEEPEST: Final = 8
"""Levels of nested JSON; more than any parameter has."""
LONGEST_PATH: Final = 1_000
"""Characters of a joined name in JSON, which is repeated for each member."""

Pairs = list[tuple[str, str]]

_BOUNDARY = re.compile(r';\s*boundary\s*=\s*"?([^";\s]{1,200})', re.IGNORECASE)
_PART_NAME = re.compile(rb';\s*name\s*=\s*(?:"([^"]*)"|([^\s;"]+))', re.IGNORECASE)


def read_query(query: str) -> Pairs:
    """A query string, also one that begins with ``&`` or ``?``.

    Raises `InvalidValue` naming the query.
    """
    return _form(query.lstrip("?&"), "query")


def read_body(content_type: str, body: bytes) -> Pairs:
    """Read a body of any type. Raises `InvalidValue`, which names the body.

    A type that is missing, or that is none of the three, is taken for a form, because
    clients forget to declare it. A body that is not a form has no parameters.
    """
    if not body.strip():
        return []
    match parse_content_type(content_type).media_type:
        case "application/json":
            return _json(body)
        case "multipart/form-data":
            boundary = _BOUNDARY.search(content_type)
            parts = _multipart(body, boundary[1] if boundary else "")
            return _bounded(parts)
        case _:
            return _form(_text(body), "body")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidValue("body", "parameters in UTF-8") from None


def _form(text: str, field: str) -> Pairs:
    try:
        return parse_qsl(
            text,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise InvalidValue(field, "percent-encoded UTF-8") from None
    except ValueError:
        raise InvalidValue(field, f"at most {MOST_PARAMETERS} parameters") from None


def _bounded(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """The pairs as a list. No more are made than are allowed."""
    taken = list(islice(pairs, MOST_PARAMETERS + 1))
    if len(taken) > MOST_PARAMETERS:
        raise InvalidValue("body", f"at most {MOST_PARAMETERS} parameters")
    return taken


def _multipart(body: bytes, boundary: str) -> Iterator[tuple[str, str]]:
    """The parameters of RFC 7578 multipart. A file is a value like any other."""
    if not boundary:
        raise InvalidValue("body", "multipart/form-data with a boundary")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    # The first delimiter needs no line break before it (RFC 2046 5.1.1).
    pieces = (b"\r\n" + body).split(delimiter)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise InvalidValue("body", "multipart/form-data that ends with its boundary")
    for piece in pieces[1:-1]:
        head, separator, value = piece.partition(b"\r\n\r\n")
        found = _PART_NAME.search(_disposition(head))
        if not separator or found is None:
            raise InvalidValue(
                "body", "multipart/form-data in which each part has a name"
            )
        yield _text(found[1] or found[2] or b""), _text(value)


def _disposition(head: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-disposition:"):
            return line
    return b""


def _json(body: bytes) -> Pairs:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidValue("body", f"JSON ({error})") from None
    if not isinstance(document, dict):
        raise InvalidValue("body", "a JSON object of parameters")
    return _bounded(_members("", document, DEEPEST))


def _members(path: str, value: object, room: int) -> Iterator[tuple[str, str]]:
    """The values in JSON. ``null`` is an absent parameter; lists repeat one."""
    if room == 0:
        raise InvalidValue("body", f"JSON of at most {DEEPEST} levels")
    if len(path) > LONGEST_PATH:
        raise InvalidValue("body", f"names of at most {LONGEST_PATH} characters")
    match value:
        case None:
            return
        case dict():
            for name, member in value.items():
                yield from _members(
                    f"{path}.{name}" if path else name, member, room - 1
                )
        case list():
            for member in value:
                yield from _members(path, member, room - 1)
        case str():
            yield path, value
        case bool():
            yield path, "true" if value else "false"
        case _:
            yield path, str(value)


TRUE: Final = ("true", "1", "yes", "on")
FALSE: Final = ("false", "0", "no", "off")

_LONGEST_NUMBER: Final = 20
_TWO_MEANINGS = frozenset({"callback", "topic", "mode", "url", "secret"})
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The longest topic and callback that are taken, in characters."""

    topic: int = LONGEST_URL
    callback: int = 250


DEFAULT_LENGTHS: Final = Lengths()


@dataclass(frozen=True, slots=True)
class Parameters:
    """Values by dotted name, those of one name in the order they came.

    Parameters that are documented without ``hub.``, like ``format`` and ``count``, are
    also found with it, except that ``callback`` is JSONP's and ``hub.callback`` the
    subscriber's.
    """

    values: Mapping[str, tuple[str, ...]]
    lengths: Lengths = DEFAULT_LENGTHS

    def all(self, name: str) -> tuple[str, ...]:
        found = self.values.get(name)
        if found is None and name not in _TWO_MEANINGS:
            found = self.values.get(f"hub.{name}")
        return found or ()

    def one(self, name: str, default: str = "") -> str:
        """The only value. Raises `InvalidValue` if there are different ones."""
        return only_value(name, set(self.all(name)), default)

    def required(self, name: str, expected: str) -> str:
        """Raises `InvalidValue` if it is missing."""
        return required_value(name, self.one(name), expected)

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value. Raises `InvalidValue`."""
        value = self.one(name).strip().lower()
        if not value:
            return default
        if value not in TRUE + FALSE:
            raise InvalidValue(name, "true or false", value)
        return value in TRUE

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number, both bounds included. Raises `InvalidValue`.

        A number out of bounds is an error: a client that asks for 60 and silently gets
        50 would take the 50 for all there are.
        """
        value = self.one(name).strip()
        if not value:
            return default
        digits = value.lstrip("0")[:_LONGEST_NUMBER] or "0"
        is_whole = value.isascii() and value.isdigit()
        if not is_whole or not least <= int(digits) <= most:
            raise InvalidValue(name, f"a whole number from {least} to {most}", value)
        return int(digits)

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """One of these in any case; None if it is absent. Raises `InvalidValue`."""
        value = self.one(name).strip().lower()
        if not value:
            return None
        try:
            return choices(value)
        except ValueError:
            raise InvalidValue(name, f"one of {', '.join(choices)}", value) from None

    def under(self, name: str) -> dict[str, str]:
        """The parameters nested in one: ``search`` gives ``{"feed.url": …}``.

        Raises `InvalidValue` if one of them has different values.
        """
        prefix = f"{name}."
        names = [each for each in self.values if each.startswith(prefix)]
        return {each.removeprefix(prefix): self.one(each) for each in names}

    def topic(self) -> str:
        """``hub.topic``; its fragment has a meaning here (Superfeedr 1.10).

        Raises `InvalidValue`, also if it is missing.
        """
        value = self.required("hub.topic", "the URL of the topic").strip()
        if len(value) > self.lengths.topic:
            expected = f"a URL of at most {self.lengths.topic} characters"
            raise InvalidValue("hub.topic", expected)
        return value

    def callback(self) -> str:
        """``hub.callback``. Raises `InvalidValue`, also if it is missing."""
        expected = "the URL of the subscriber's callback"
        value = self.required("hub.callback", expected).strip()
        if len(value) > self.lengths.callback:
            expected = f"a URL of at most {self.lengths.callback} characters"
            raise InvalidValue("hub.callback", expected)
        return read_web_url(value, "hub.callback", allows_fragment=False)


def read_parameters(
    query: str,
    content_type: str = "",
    body: bytes = b"",
    lengths: Lengths = DEFAULT_LENGTHS,
) -> Parameters:
    """Read all parameters. Raises `InvalidValue` naming ``query`` or ``body``."""
    merged = _gather(read_query(query)) | _gather(read_body(content_type, body))
    return Parameters({name: tuple(values) for name, values in merged.items()}, lengths)


def _gather(pairs: Pairs) -> dict[str, list[str]]:
    gathered: dict[str, list[str]] = {}
    for name, value in pairs:
        if value.strip():
            gathered.setdefault(_dotted(name), []).append(value)
    return gathered


def _dotted(name: str) -> str:
    """``search[feed][url]`` as ``search.feed.url``; ``[]`` and ``[3]`` are dropped."""
    head, bracket, _ = name.partition("[")
    if not bracket:
        return name.strip()
    inner = [each for each in _BRACKETS.findall(name) if each and not each.isdigit()]
    return ".".join([head.strip(), *inner])
