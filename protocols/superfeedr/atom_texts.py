"""Text constructs and content as Atom elements (RFC 4287 3.1 and 4.1.3)."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Final
from xml.parsers.expat import ExpatError, ParserCreate

from protocols.model import Text
from protocols.superfeedr.atom_syntax import is_composite, media_type
from protocols.superfeedr.xml import XmlWriter, clean

DEEPEST: Final = 200
"""Elements inside each other; libxml2 reads no more than 256."""

_DIV = b'<div xmlns="http://www.w3.org/1999/xhtml">'
_NAMESPACE = re.compile(rb"""xmlns(?::[\w.-]+)?\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CHARACTERS = rb"(?:[A-Za-z0-9._~:/?@!$'()*+,;=-]|%[0-9A-Fa-f]{2}|&amp;)*"
_ABSOLUTE_URI = re.compile(
    rb"[A-Za-z][A-Za-z0-9+.-]*:"
    rb"(?://[A-Za-z0-9._~-]+(?::[0-9]{1,5})?(?=[/?#]|\Z)|(?!/))"
    rb"%b(?:#%b)?" % (_CHARACTERS, _CHARACTERS)
)
_XML_TYPE = re.compile(r"(?:.*\+xml|[^/]+/xml)\s*(?:;.*)?", re.IGNORECASE)


def put_text_construct(writer: XmlWriter, tag: bytes, text: Text | None) -> None:
    """Text, html or xhtml and nothing else.

    XHTML that is not well-formed is sent as HTML, anything unknown as text.
    """
    if text is None:
        return
    kind = text.type
    if kind == "xhtml":
        if _put_xhtml(writer, tag, text.value):
            return
        kind = "html"
    elif kind != "html":
        kind = "text"
    opening = b'<%b type="%b">' % (tag, kind.encode())
    writer.put_text(opening, text.value, b"</%b>" % tag)


def put_content(writer: XmlWriter, text: Text | None) -> bool:
    """Content may be of any media type. Whether it is such that a summary must stand
    beside it: Base64 is for programs (RFC 4287 4.1.2)."""
    if text is None or "/" not in text.type or not media_type(text.type):
        put_text_construct(writer, b"content", text)
    elif text.type.lower().startswith("text/"):
        _put_typed(writer, text)
    elif _XML_TYPE.fullmatch(text.type):
        _put_xml(writer, text)
    elif is_composite(text.type) or not _is_base64(text.value):
        put_text_construct(writer, b"content", Text(value=text.value, type="text"))
    else:
        _put_typed(writer, text)
        return True
    return False


def _put_xhtml(writer: XmlWriter, tag: bytes, markup: str) -> bool:
    cleaned = clean(markup)
    if not _is_well_formed(cleaned):
        return False
    markup_of_tag = (tag, _DIV, cleaned, tag)
    writer.put(b'<%b type="xhtml">%b%b</div></%b>' % markup_of_tag)
    return True


def _put_xml(writer: XmlWriter, text: Text) -> None:
    """As a child element if it is one with a namespace of its own; else as text: its
    element would become one of Atom's."""
    cleaned = clean(text.value)
    if _is_well_formed(cleaned) and _has_one_root(cleaned):
        writer.parts += (b'<content type="', text.type)
        writer.put(b'">%b</content>' % cleaned)
    else:
        _put_typed(writer, text)


def _put_typed(writer: XmlWriter, text: Text) -> None:
    writer.parts += (b'<content type="', text.type)
    writer.put_text(b'">', text.value, b"</content>")


def _is_base64(value: str) -> bool:
    try:
        return bool(b64decode("".join(value.split()), validate=True))
    except (binascii.Error, ValueError):
        return False


def _is_well_formed(markup: bytes) -> bool:
    """Inside an element, where there can be no document type and so no entities.

    Parsers refuse namespaces that are no URIs, too, and the whole document with them.
    """
    if b"xmlns" in markup and not _has_sound_namespaces(markup):
        return False
    depth = _Depth() if markup.count(b"<") >= DEEPEST else None
    try:
        _parse(b"<div>%b</div>" % markup, depth)
    except ExpatError:
        return False
    return depth is None or depth.deepest <= DEEPEST


def _has_sound_namespaces(markup: bytes) -> bool:
    """RFC 3986, as far as namespaces are likely to use it; "" takes one back."""
    names = (double or single for double, single in _NAMESPACE.findall(markup))
    return all(not name or _ABSOLUTE_URI.fullmatch(name) for name in names)


def _has_one_root(markup: bytes) -> bool:
    """Whether there is one element on the outside, and it has a namespace."""
    depth = _Depth()
    _parse(b"<div>%b</div>" % markup, depth)
    return len(depth.roots) == 1 and " " in depth.roots[0] and not depth.has_text


class _Depth:
    """What is inside an element: how deep, and what is on the outside of it."""

    def __init__(self) -> None:
        self.deepest = 0
        self.roots: list[str] = []
        self.has_text = False
        self._depth = 0

    def start(self, name: str, attributes: object) -> None:
        if self._depth == 1:
            self.roots.append(name)
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)

    def end(self, name: str) -> None:
        self._depth -= 1

    def text(self, text: str) -> None:
        self.has_text |= self._depth == 1 and bool(text.strip())


def _parse(document: bytes, depth: _Depth | None) -> None:
    parser = ParserCreate("UTF-8", " ")
    if depth is not None:
        parser.StartElementHandler = depth.start
        parser.EndElementHandler = depth.end
        parser.CharacterDataHandler = depth.text
    parser.Parse(document, True)
