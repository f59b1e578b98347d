"""A checker for the part of JSON Schema that the hub's description uses.

It is stricter than JSON Schema in two ways: it reports a member of an object that the
schema does not name, and a keyword of the schema that it does not know itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

Schema = Mapping[str, Any]
KNOWN = {
    *("$ref", "anyOf", "enum", "type", "format", "items", "properties", "required"),
    *("description", "default", "title", "deprecated"),
}


def faults(
    value: object, schema: Schema, known: Mapping[str, Schema], place: str = "$"
) -> list[str]:
    """Where and why a value does not match the schema; ``known``: the components."""
    return list(_faults(value, schema, known, place))


def _faults(  # noqa: C901 - one branch for each word
    value: object, schema: Schema, known: Mapping[str, Schema], place: str
) -> Iterator[str]:
    if unknown := schema.keys() - KNOWN:
        yield f"{place}: the schema has {sorted(unknown)}"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        yield from _faults(value, known[name], known, place)
    elif "anyOf" in schema:
        found = [list(_faults(value, it, known, place)) for it in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    elif not _is_of(value, schema["type"]):
        yield f"{place}: {value!r} is no {schema['type']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    elif schema.get("format") == "date-time" and not _is_time(value):
        yield f"{place}: {value!r} is no time with a zone"
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _faults(each, schema["items"], known, f"{place}[{index}]")
    elif isinstance(value, dict) and "properties" in schema:
        yield from _faults_of_members(value, schema, known, place)


def _faults_of_members(
    value: Mapping[str, object], schema: Schema, known: Mapping[str, Schema], place: str
) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}: {name} is missing"
    for name, member in value.items():
        if name not in schema["properties"]:
            yield f"{place}: {name} is not described"
        else:
            described = schema["properties"][name]
            yield from _faults(member, described, known, f"{place}.{name}")


def _is_of(value: object, kind: str) -> bool:
    match kind, value:
        case "boolean", bool():
            return True
        case (("integer" | "number"), bool()):
            return False
        case ("integer", int()) | ("number", int() | float()):
            return True
        case ("string", str()) | ("object", dict()) | ("array", list()):
            return True
        case "null", None:
            return True
    return False


def _is_time(value: object) -> bool:
    try:
        return datetime.fromisoformat(str(value)).tzinfo is not None
    except ValueError:
        return False
