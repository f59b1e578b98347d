"""Reading JSON that may hold anything: values of the expected type, or none."""

from __future__ import annotations

import orjson

from protocols.errors import LimitExceeded, MalformedDocument
from protocols.feeds.extensions import Json
from protocols.feeds.limits import MAX_EXTENSION_DEPTH, MAX_JSON_DEPTH


def load_json(body: bytes) -> Json:
    """Decode UTF-8. Raises `MalformedDocument` and `LimitExceeded`."""
    try:
        document: Json = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth limit" in error.msg:
            raise LimitExceeded("the depth of nested JSON", MAX_JSON_DEPTH) from None
        raise MalformedDocument(error.msg, error.lineno, error.colno) from None
    return document


def shallow(value: Json, depth: int = MAX_EXTENSION_DEPTH) -> Json:
    """A value without what is nested deeper than any renderer would follow."""
    if type(value) is dict and depth:
        return {name: shallow(each, depth - 1) for name, each in value.items()}
    if type(value) is list and depth:
        return [shallow(each, depth - 1) for each in value]
    return None if type(value) in (dict, list) else value


def text_of(holder: dict[str, Json], name: str) -> str:
    value = holder.get(name)
    return value.strip() if type(value) is str else string_of(value)


def string_of(value: Json) -> str:
    """Numbers are taken as text: ids and sizes come as either."""
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
