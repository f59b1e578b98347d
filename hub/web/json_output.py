"""JSON answers: the base of their shapes, and how they are written.

Secrets, credentials, and validators that could authenticate never appear; a secret
shows as ``has_secret``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Self

import msgspec
from starlette.responses import Response

JSON_TYPE = "application/json; charset=utf-8"
SCHEMA_REFERENCE = "#/components/schemas/{name}"

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""RFC 3339 in UTC, with ``Z``."""


class JsonObject(msgspec.Struct, kw_only=True):
    """Base of the objects in answers. ``FeedJson`` is called ``Feed`` in the API."""

    @classmethod
    def of(cls, *records: object, **members: Any) -> Self:
        """Make an object of the given members, and of attributes of the records.

        A member that is not given is the attribute with its name; exactly one of the
        records must have it.
        """
        kinds = (cls, tuple(map(type, records)), tuple(members))
        if (sources := _SOURCES.get(kinds)) is None:
            sources = _SOURCES[kinds] = _sources(cls, records, members)
        for name, number in sources:
            members[name] = getattr(records[number], name)
        return cls(**members)

    @classmethod
    def of_any(cls, record: object | None) -> Self | None:
        return None if record is None else cls.of(record)


def _sources(
    kind: type[JsonObject], records: Sequence[object], given: Collection[str]
) -> list[tuple[str, int]]:
    """The members that are not given, each with the index of the record that has it.

    Raises `TypeError` if several records have one.
    """
    sources = []
    for name in kind.__struct_fields__:
        if name not in given:
            having = (n for n, record in enumerate(records) if hasattr(record, name))
            number, *others = having
            if others:
                raise TypeError(f"{name} of {kind.__name__} may be of several records")
            sources.append((name, number))
    return sources


_SOURCES: Final[dict[object, list[tuple[str, int]]]] = {}
"""Results of `_sources` by shape, types of the records, and given members."""


class DelayJson(JsonObject):
    """How long ``entries`` took: half at most ``p50`` seconds, 99 of 100 ``p99``; null
    without entries, or if it is longer than what is counted."""

    entries: int
    p50: float | None
    p99: float | None


class FeedFreshnessJson(JsonObject):
    """How late new entries are: from their publication until they were committed, and
    from then until the first callback answered with 2xx."""

    publication_to_commit: DelayJson
    commit_to_delivery: DelayJson


def json_response(
    document: msgspec.Struct,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    is_secret: bool = False,
) -> Response:
    """A JSON answer. ``is_secret``: no cache may store it."""
    body = msgspec.json.encode(document)
    headers = {"Cache-Control": "no-store"} if is_secret else None
    return Response(body, status_code=status, media_type=JSON_TYPE, headers=headers)


def named_schema(name: str) -> msgspec.Meta:
    """Metadata of a text whose values the OpenAPI document lists under that name."""
    return msgspec.Meta(extra_json_schema={"$ref": SCHEMA_REFERENCE.format(name=name)})


def former_name(of: str) -> msgspec.Meta:
    """Metadata of a member's former name, which is kept and marked as deprecated."""
    return msgspec.Meta(
        description=f"Former name of `{of}`.", extra_json_schema={"deprecated": True}
    )


def next_after(ids: list[int], limit: int) -> int | None:
    """The ``after`` of the next page; None if this page is the last."""
    return ids[-1] if len(ids) == limit else None
