"""Turns requests into values: bodies by msgspec structures, queries one by one.

Everything is bounded: the size of a body, the time it may take, the length of a page.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final, TypeVar, get_args, get_type_hints

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from hub.web.problems import Problem
from hub.web.server.http_protocol import HTTP_EXTENSION
from protocols.protocol_errors import InvalidValue

LARGEST_BODY = 1024 * 1024
BODY_SECONDS = 30.0
LARGEST_ID = 2**63 - 1
DEFAULT_PAGE = 100
LARGEST_PAGE = 1_000
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NOT_A_CHOICE = "Invalid enum value"
"""The beginning of msgspec's message about an unexpected text."""

Body = TypeVar("Body", bound=msgspec.Struct)
Choice = TypeVar("Choice", bound=StrEnum)


class RequestBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of request bodies: an unknown field is refused by its name."""


def combined_field(headers: Headers, name: str) -> str:
    """All lines of a list field joined into one (RFC 9110 5.3); "" if there are
    none."""
    return ", ".join(headers.getlist(name))


async def read_body(request: Request, shape: type[Body]) -> Body:
    """The JSON body. Raises `Problem` 408, 413, 415, or 422 naming the field."""
    check_type(request, "application/json")
    body = await read_bytes(request)
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        reason, field = _where(str(error), shape)
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, reason, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # a text not UTF-8
        raise Problem(
            HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}"
        ) from None


def check_type(request: Request, expected: str, *others: str) -> None:
    """Raises `Problem` 415 if the body is declared to be something else."""
    declared = request.headers.get("content-type", "").partition(";")[0].strip()
    if declared.lower() not in (expected, *others):
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected Content-Type {expected}"
        )


async def read_bytes(
    request: Request,
    largest: int = LARGEST_BODY,
    take: Callable[[int], None] = lambda count: None,
) -> bytes:
    """The body, whatever it is; ``take`` is called with the length of each piece.

    Raises `Problem` 408 or 413, and what ``take`` raises.
    """
    http = request.scope.get("extensions", {}).get(HTTP_EXTENSION)
    is_there = http is not None and http.has_body
    try:
        if is_there:  # a deadline would cost as much as reading it
            return await _read_bounded(request, largest, take)
        async with asyncio.timeout(BODY_SECONDS):
            return await _read_bounded(request, largest, take)
    except ClientDisconnect:  # nobody reads the answer; it is not logged either
        raise Problem(HTTPStatus.BAD_REQUEST, "the body ended early") from None
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, f"the body took over {BODY_SECONDS:g} s"
        ) from None


async def _read_bounded(
    request: Request, largest: int, take: Callable[[int], None]
) -> bytes:
    body, is_whole = bytearray(), False
    while not is_whole:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        if len(body) + len(chunk) > largest:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body is larger than {largest} bytes",
            )
        take(len(chunk))
        body += chunk
        is_whole = not message.get("more_body", False)
    return bytes(body)


def _where(message: str, shape: type[msgspec.Struct]) -> tuple[str, str]:
    """msgspec's message as a reason that names the field, and that field.

    It reads ``Expected `str`, got `int` - at `$.url```, or names the field itself:
    ``Object contains unknown field `uri```.
    """
    reason, separator, path = message.rpartition(" - at `$")
    if separator:
        field = path.strip("`").lstrip(".")
        if reason.startswith(_NOT_A_CHOICE):
            expected = f"expected one of {', '.join(_choices(shape, field))}, not"
            reason = reason.replace(_NOT_A_CHOICE, expected, 1)
        return f"{field}: {reason[0].lower()}{reason[1:]}", field
    quoted = message.split("`")
    is_about_field = "field" in message and len(quoted) > 2
    return message, quoted[1] if is_about_field else ""


def _choices(shape: type[msgspec.Struct], path: str) -> list[str]:
    """The values that the member at that path, ``format`` or ``scopes[0]``, accepts."""
    hint = get_type_hints(shape)[path.partition("[")[0]]
    return [str(each) for each in (get_args(hint) or (hint,))[0]]


def path_id(request: Request, what: str, name: str = "id") -> int:
    """The parameter ``name`` of the path, a number; one that is larger than any id is
    `LARGEST_ID`, which nothing has. Raises `Problem` 404 if it is not a number."""
    raw = str(request.path_params[name])
    if not raw.isascii() or not raw.isdigit() or len(raw) > 19:
        raise Problem(HTTPStatus.NOT_FOUND, f"no {what} {raw[:40]}")
    return min(int(raw), LARGEST_ID)


_GROUPED: Final = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")


def ungrouped(raw: str) -> str:
    """A number without the commas with which pages write it; other texts as they
    are."""
    return raw.replace(",", "") if _GROUPED.fullmatch(raw) else raw


def form_id(form: Mapping[str, str], name: str) -> int | None:
    """A number in a form, also as pages write it (``3,881``); None if it is left empty.
    Raises `InvalidValue`."""
    raw = ungrouped(form.get(name, "").strip())
    if not raw:
        return None
    if not raw.isascii() or not raw.isdigit() or len(raw) > 18 or raw.strip("0") == "":
        raise InvalidValue(name, "a number from 1", raw)
    return int(raw)


def form_choice(
    form: Mapping[str, str], name: str, choices: type[Choice], default: Choice
) -> Choice:
    """A choice in a form; ``default`` if it is empty. Raises `InvalidValue`."""
    raw = form.get(name, "")
    try:
        return choices(raw) if raw else default
    except ValueError:
        raise InvalidValue(name, f"one of {', '.join(choices)}", raw) from None


def query_number(
    request: Request, name: str, default: int, largest: int, least: int = 0
) -> int:
    """A whole number of the query. Raises `InvalidValue`."""
    raw = request.query_params.get(name)
    if raw is None:
        return default
    is_number = raw.isascii() and raw.isdigit() and len(raw) <= 19
    if not is_number or not least <= int(raw) <= largest:
        raise InvalidValue(name, f"a whole number from {least} to {largest}", raw)
    return int(raw)


def query_whole(request: Request, name: str, default: int) -> int:
    """A whole number of the query, which the caller limits to what is allowed.

    Raises `InvalidValue`.
    """
    raw = request.query_params.get(name)
    if raw is None:
        return default
    if not _WHOLE.fullmatch(raw):
        raise InvalidValue(name, "a whole number", raw)
    return int(raw)


def query_page(request: Request) -> tuple[int, int]:
    """``after`` and ``limit``: where a page of a list begins, and its length."""
    after = query_number(request, "after", 0, LARGEST_ID)
    return after, query_limit(request)


def query_limit(request: Request) -> int:
    """The length of a page. Raises `InvalidValue`."""
    return query_number(request, "limit", DEFAULT_PAGE, LARGEST_PAGE, least=1)


def query_flag(request: Request, name: str, default: bool) -> bool:
    raw = request.query_params.get(name)
    if raw is None:
        return default
    if raw not in ("true", "false"):
        raise InvalidValue(name, "true or false", raw)
    return raw == "true"


def query_choice(request: Request, name: str, choices: type[Choice]) -> Choice | None:
    raw = request.query_params.get(name)
    if raw is None:
        return None
    try:
        return choices(raw)
    except ValueError:
        raise InvalidValue(name, f"one of {', '.join(choices)}", raw) from None
