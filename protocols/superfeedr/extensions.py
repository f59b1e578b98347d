"""What the schema has no place for: one JSON object, or one element of our namespace.

As XML a mapping is ``field`` elements with names, a list is ``item`` elements; a
``type`` of ``object``, ``list``, ``number``, ``boolean`` or ``null`` says what a text
alone would not. The two forms say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from protocols.enclosures import Captions, enclosed_files
from protocols.model import Entry, Extensions
from protocols.superfeedr.xml import Parts, XmlWriter
from protocols.text import collapse

NAMESPACE: Final = "urn:fanfare:extensions"

_UPDATED: Final[Extensions] = {"fanfare": {"updated": True}}


def extensions_of(entry: Entry, *, is_updated: bool) -> Extensions:
    """Its own; with ``enclosures``, as far as more is said of these than links have
    place for, and ``fanfare: {updated: true}`` if it is newer than its record."""
    extensions = entry.extensions
    if extensions and (described := _enclosures(entry)):
        extensions = {**extensions, "enclosures": described}
    return {**extensions, **_UPDATED} if is_updated else extensions


def _enclosures(entry: Entry) -> list[dict[str, Any]]:
    """The same whichever format says it: a link has neither duration nor size in
    pixels, poster, captions or further sources."""
    files = enclosed_files(entry)
    if not files:
        return []
    found = []
    titles = {collapse(link.title) for link in entry.links if link.title}
    for file in files:
        facts: dict[str, Any] = {
            "title": "" if file.title in titles else file.title,
            "duration": file.seconds,
            "width": file.width,
            "height": file.height,
            "poster": file.poster,
            "captions": [_captions(each) for each in file.captions],
        }
        said = {name: value for name, value in facts.items() if value}
        if said or not file.is_linked:
            found.append({"href": file.href, "type": file.type, **said})
    return found


def _captions(captions: Captions) -> dict[str, str]:
    language = {"language": captions.language} if captions.language else {}
    label = {"label": captions.label} if captions.label else {}
    return {"href": captions.url, **language, **label}


def put_extensions(writer: XmlWriter, extensions: Extensions) -> None:
    """``<ext:extensions>``, or nothing when there is nothing."""
    if extensions:
        writer.put(b'<ext:extensions xmlns:ext="%b">' % NAMESPACE.encode())
        _put_fields(writer.parts, extensions)
        writer.put(b"</ext:extensions>")


def _put_fields(parts: Parts, mapping: Mapping[str, Any]) -> None:
    for name, value in mapping.items():
        parts += (b'<ext:field name="', name)
        if type(value) is str:
            parts += (b'">', value, b"</ext:field>", "")
        else:
            _put_typed(parts, value, b'"', b"</ext:field>")


def _put_typed(parts: Parts, value: Any, opening: bytes, closing: bytes) -> None:
    """``opening`` lacks the type and its end; text has no type."""
    if isinstance(value, str):
        parts += (opening + b">", value)
    elif value is None:
        parts += (opening + b' type="null">', "")
    elif isinstance(value, bool):
        parts += (opening + b' type="boolean">', "true" if value else "false")
    elif isinstance(value, Mapping):
        parts += (opening + b' type="object">', "")
        _put_fields(parts, value)
    elif isinstance(value, Sequence):
        parts += (opening + b' type="list">', "")
        for each in value:
            _put_typed(parts, each, b"<ext:item", b"</ext:item>")
    else:
        parts += (opening + b' type="number">', str(value))
    parts += (closing, "")
