"""What kind of document the bytes are, told by how they begin."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from protocols.errors import NotAFeed


class Kind(StrEnum):
    XML = "xml"
    HTML = "html"
    JSON = "json"


_SIGNATURES: Final = (
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"RIFF", "a RIFF file"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\x7fELF", "a program"),
    (b"ID3", "an MP3 file"),
    (b"OggS", "an Ogg file"),
)
_BEGINNINGS: Final = tuple(signature for signature, _ in _SIGNATURES)
_HTML_ROOTS: Final = frozenset(
    [
        "html",
        "head",
        "body",
        "title",
        "meta",
        "link",
        "script",
        "style",
        "div",
        "p",
        "span",
        "table",
        "center",
        "br",
        "b",
        "h1",
        "h2",
        "form",
        "iframe",
        "font",
        "img",
    ]
)
_ROOTS: Final = (b"<rss", b"<feed", b"<rdf:RDF")
_CAPITALS: Final = frozenset({"rss", "feed", "rdf:rdf", "channel"})
_SAMPLE: Final = 8_192


def refuse_binary(body: bytes) -> None:
    """Raise `NotAFeed` for what is no text in any encoding that feeds come in."""
    if body.startswith(_BEGINNINGS):
        kinds = (found for start, found in _SIGNATURES if body.startswith(start))
        raise NotAFeed(next(kinds))


def sniff(body: bytes, root: str, doctype: str) -> Kind:
    """Tell the kind of a UTF-8 document without leading white space.

    ``root`` and ``doctype`` are the names its prolog has, "" for none. Raises
    `NotAFeed` for what is neither markup nor JSON.
    """
    if body.startswith((b"{", b"[")):
        return Kind.JSON
    is_feed = f"<{root}".encode() in _ROOTS  # whatever type a template gave it
    if b"\x00" in body[:_SAMPLE] and not is_feed:
        raise NotAFeed("binary data")
    if not body.startswith(b"<"):
        raise NotAFeed("plain text")
    is_html = root.lower() in _HTML_ROOTS or doctype.lower() == "html"
    return Kind.HTML if is_html and not is_feed else Kind.XML


def leading_junk(body: bytes, root: str) -> int:
    """How many bytes of something else precede the document; 0 for none.

    Warnings of a server's scripts are printed there, and comments before the XML
    declaration, where XML allows nothing at all.
    """
    sample = body[:_SAMPLE]
    if body.startswith((b"{", b"[")) or b"<html" in sample.lower():
        return 0
    roots = (*_ROOTS, f"<{root}".encode()) if root.lower() in _CAPITALS else _ROOTS
    feed = min((at for each in roots if (at := sample.find(each)) >= 0), default=-1)
    declaration = sample.find(b"<?xml")
    if declaration >= 0 and not 0 <= feed < declaration:  # else it is in an entry
        return declaration
    if body.startswith(b"<") and root.lower() not in _HTML_ROOTS:
        return 0
    return max(feed, 0)
