"""Bodies of requests as names and values: forms, multipart forms and JSON.

What the clients of Superfeedr send: curl's multipart from PHP, JSON from Node, forms
from everybody else. Names and values come out as they were written; JSON's members
are joined by full stops, its lists repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

import orjson

from protocols.errors import InvalidValue
from protocols.http import parse_content_type

MOST_PARAMETERS: Final = 1_000
DEEPEST: Final = 8
"""Levels of nested JSON; deeper than any parameter is."""
LONGEST_PATH: Final = 1_000
"""Characters of a name in JSON, joined: it is repeated for each of its members."""

Pairs = list[tuple[str, str]]

_BOUNDARY = re.compile(r';\s*boundary\s*=\s*"?([^";\s]{1,200})', re.IGNORECASE)
_PART_NAME = re.compile(rb';\s*name\s*=\s*(?:"([^"]*)"|([^\s;"]+))', re.IGNORECASE)


def read_query(query: str) -> Pairs:
    """A query string, also one that begins with ``&`` or ``?``.

    Raises `InvalidValue` naming the query.
    """
    return _form(query.lstrip("?&"), "query")


def read_body(content_type: str, body: bytes) -> Pairs:
    """A body of whatever type; one that is no form is no parameters.

    A type that is missing, or that is none of these three, is taken for a form, as
    clients forget to say so. Raises `InvalidValue` naming the body.
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
    """No more of them are made than are taken."""
    taken = list(islice(pairs, MOST_PARAMETERS + 1))
    if len(taken) > MOST_PARAMETERS:
        raise InvalidValue("body", f"at most {MOST_PARAMETERS} parameters")
    return taken


def _multipart(body: bytes, boundary: str) -> Iterator[tuple[str, str]]:
    """RFC 7578. A file is a value like any other."""
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
            raise InvalidValue("body", "multipart/form-data whose parts have names")
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
    """``null`` is an absent parameter; lists repeat one."""
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
