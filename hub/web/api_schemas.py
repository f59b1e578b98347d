"""JSON Schema, made from a short notation of shapes.

``string``, ``integer``, ``number``, ``boolean``, ``time``, ``object``, or a name of
`hub.web.api_shapes`; ``[…]`` is a list of it, ``?`` at the end means that it may be
null, and ``|`` that it is one or the other.
"""

from __future__ import annotations

from hub.web.api_shapes import CHOICES, SHAPES, Shape

Schema = dict[str, object]


def schemas() -> dict[str, object]:
    """Every shape; a member that is named is always there, and there are no others."""
    choices = {
        name: {"type": "string", "enum": [str(each) for each in values]}
        for name, values in CHOICES.items()
    }
    shapes = {name: _object(shape) for name, shape in SHAPES.items()}
    problem: Schema = {
        **shapes["Problem"],
        "properties": {
            **{name: member_schema(kind) for name, kind in SHAPES["Problem"].items()},
            "field": {"type": "string"},
        },
    }
    return {**choices, **shapes, "Problem": problem}


def _object(shape: Shape) -> Schema:
    return {
        "type": "object",
        "properties": {name: member_schema(kind) for name, kind in shape.items()},
        "required": list(shape),
    }


def member_schema(kind: str) -> Schema:
    """One member of a shape."""
    if kind.endswith("?"):
        return {"anyOf": [member_schema(kind[:-1]), {"type": "null"}]}
    if kind.startswith("["):
        return {"type": "array", "items": member_schema(kind[1:-1])}
    if "|" in kind:
        return {"anyOf": [member_schema(each) for each in kind.split("|")]}
    if kind == "time":
        return {"type": "string", "format": "date-time"}
    if kind in SHAPES or kind in CHOICES:
        return {"$ref": f"#/components/schemas/{kind}"}
    return {"type": kind}
