"""What the schema has no place for: one JSON object, or one element of our namespace.

As XML a mapping is ``field`` elements with names, a list is ``item`` elements; a
``type`` of ``object``, ``list``, ``number``, ``boolean`` or ``null`` says what a text
alone would not. The two forms say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from protocols.model import Entry, Extensions
from protocols.superfeedr.xml import attribute, escape

NAMESPACE: Final = "urn:fanfare:extensions"

_UPDATED: Final[Extensions] = {"fanfare": {"updated": True}}


def extensions_of(entry: Entry, *, is_updated: bool) -> Extensions:
    """Its own; with ``fanfare: {updated: true}`` if it is newer than its record."""
    return {**entry.extensions, **_UPDATED} if is_updated else entry.extensions


def extensions_element(extensions: Extensions) -> str:
    """``<ext:extensions>``, or "" when there is nothing."""
    if not extensions:
        return ""
    return (
        f'<ext:extensions xmlns:ext="{NAMESPACE}">{_fields(extensions)}'
        "</ext:extensions>"
    )


def _fields(mapping: Mapping[str, Any]) -> str:
    return "".join(
        _element("field", value, f' name="{attribute(name)}"')
        for name, value in mapping.items()
    )


def _element(tag: str, value: Any, name: str = "") -> str:
    kind, content = _typed(value)
    typed = f' type="{kind}"' if kind else ""
    return f"<ext:{tag}{name}{typed}>{content}</ext:{tag}>"


def _typed(value: Any) -> tuple[str, str]:
    """The type, "" for text, and the element's content."""
    if isinstance(value, str):
        return "", escape(value)
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, Mapping):
        return "object", _fields(value)
    if isinstance(value, Sequence):
        return "list", "".join(_element("item", each) for each in value)
    return "number", str(value)
