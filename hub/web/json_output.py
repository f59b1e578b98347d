"""Answers in JSON: the base of their shapes, and how they are written.

Secrets, credentials and validators' contents that could authenticate never appear; a
secret shows as ``has_secret``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from http import HTTPStatus
from operator import attrgetter
from typing import Annotated, Any, Self

import msgspec
from starlette.responses import Response

JSON_TYPE = "application/json; charset=utf-8"
SCHEMA_REFERENCE = "#/components/schemas/{name}"

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""RFC 3339 in UTC, with ``Z``."""


class JsonObject(msgspec.Struct, kw_only=True):
    """Base of what answers hold. ``FeedJson`` is what the API calls ``Feed``."""

    @classmethod
    def of(cls, record: object, /, **members: Any) -> Self:
        """Of the members given, and else of the record's attributes of that name."""
        names, values_of = _attributes(cls, tuple(members))
        return cls(**dict(zip(names, values_of(record), strict=True)), **members)

    @classmethod
    def of_any(cls, record: object | None) -> Self | None:
        return None if record is None else cls.of(record)


@cache
def _attributes(
    kind: type[JsonObject], given: tuple[str, ...]
) -> tuple[list[str], Callable[[object], Iterable[Any]]]:
    """The members that are not given, two at least, and what reads them."""
    names = [each for each in kind.__struct_fields__ if each not in given]
    return names, attrgetter(*names)


def json_response(
    document: msgspec.Struct,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    is_secret: bool = False,
) -> Response:
    """``is_secret``: nobody keeps it."""
    body = msgspec.json.encode(document)
    headers = {"Cache-Control": "no-store"} if is_secret else None
    return Response(body, status_code=status, media_type=JSON_TYPE, headers=headers)


def named_schema(name: str) -> msgspec.Meta:
    """For a text of which the OpenAPI document lists the values under that name."""
    return msgspec.Meta(extra_json_schema={"$ref": SCHEMA_REFERENCE.format(name=name)})


def former_name(of: str) -> msgspec.Meta:
    """For a member under a name that it had before: it stays, marked as deprecated."""
    return msgspec.Meta(
        description=f"Former name of `{of}`.", extra_json_schema={"deprecated": True}
    )


def next_after(ids: list[int], limit: int) -> int | None:
    """The ``after`` of the page behind this one; None behind the last."""
    return ids[-1] if len(ids) == limit else None
