"""XML as text: what is put into it can neither break out of it nor break it."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from protocols.model import Text

XHTML: Final = "http://www.w3.org/1999/xhtml"

_FORBIDDEN = bytes({*range(0x20)} - {*b"\t\n\r"})
_NONCHARACTERS = ("\ufffe", "\uffff")
_FORBIDDEN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MEDIA_TYPE = re.compile(r"[^\s/;]+/[^\s/;]+.*")


def encode(document: str) -> bytes:
    """As UTF-8, without the characters that XML 1.0 forbids even as references.

    Done once for a whole document: over bytes it is many times cheaper than a search
    in every text, and no byte of a longer UTF-8 sequence is a control character.
    """
    for noncharacter in _NONCHARACTERS:
        document = document.replace(noncharacter, "")
    return document.encode("utf-8", "ignore").translate(None, _FORBIDDEN)


def escape(text: str) -> str:
    """For between tags. A carriage return would be read as a line feed."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\r", "&#13;")
    )


def attribute(text: str) -> str:
    """For between double quotes, where line breaks and tabs would become blanks."""
    return (
        escape(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    )


def character_data(text: str) -> str:
    """For between tags, where there may be much of it: markup goes into CDATA.

    That takes a tenth of the time of escaping it. Texts with a bracket are escaped,
    as what `encode` drops could leave the end of the section behind.
    """
    if "<" not in text or "]" in text or "\r" in text:
        return escape(text)
    return f"<![CDATA[{text}]]>"


def element(tag: str, text: str) -> str:
    """``<tag>text</tag>``, or "" for no text."""
    return f"<{tag}>{escape(text)}</{tag}>" if text else ""


def content_element(text: Text | None) -> str:
    """Atom content (RFC 4287 4.1.3), which may be of any media type."""
    if text is not None and _MEDIA_TYPE.fullmatch(text.type):
        content = character_data(text.value)
        return f'<content type="{attribute(text.type)}">{content}</content>'
    return text_element("content", text)


def text_element(tag: str, text: Text | None) -> str:
    """A text construct (RFC 4287 3.1): text, html or xhtml and nothing else.

    XHTML that is not well-formed is sent as HTML, anything unknown as text.
    """
    if text is None:
        return ""
    if text.type == "xhtml":
        markup = _FORBIDDEN_TEXT.sub("", text.value)
        if _is_well_formed(markup):
            return f'<{tag} type="xhtml"><div xmlns="{XHTML}">{markup}</div></{tag}>'
    kind = "html" if text.type in ("html", "xhtml") else "text"
    return f'<{tag} type="{kind}">{character_data(text.value)}</{tag}>'


def _is_well_formed(markup: str) -> bool:
    """Inside an element, where there can be no document type and so no entities."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        etree.fromstring(f'<div xmlns="{XHTML}">{markup}</div>', parser)
    except etree.XMLSyntaxError:
        return False
    return True
