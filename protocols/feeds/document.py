"""Prepare a document for its reader: within limits, in UTF-8, of a known kind.

The kind is recognized by the document's beginning. No document type definition ever
reaches the parser: the declaration is blanked out, and a document that declares
entities of its own is refused. So nothing can be expanded, and the parser opens no
file.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from enum import StrEnum
from html.entities import name2codepoint
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.feed_links import discover
from protocols.feeds.limits import check_body, check_json, check_xml
from protocols.feeds.namespaces import with_usual_uris
from protocols.feeds.slices import Slices, find_region
from protocols.feeds.text_encoding import to_utf8
from protocols.model import Outline, ParsedFeed
from protocols.protocol_errors import (
    HTML_PAGE,
    EmptyDocument,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)

_DOCTYPE: Final = re.compile(rb"<!DOCTYPE\s+([^\s>\[]*)", re.IGNORECASE)
_ENTITY: Final = re.compile(rb"<!ENTITY\s+([^\s%\"'<>]{1,200})")
_SUBSET_END: Final = re.compile(rb"\]\s*>")
_ROOT: Final = re.compile(rb"<([^\s<>/!?=&\"']{1,200})")
# A construct without an end extends to the end of the text: no byte is scanned twice.
_SKIPPED: Final = re.compile(
    rb"\s+|<\?[^?]*+(?:\?(?!>)[^?]*+)*+(?:\?>|\Z)"
    rb"|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
)


class Prolog(Struct, frozen=True, kw_only=True, gc=False):
    """The beginning of a document, up to its root.

    ``root`` is the name of the first start tag as written; "" if there is none.
    """

    root: str
    doctype: str = ""
    doctype_span: tuple[int, int] = (0, 0)


def read_prolog(body: bytes) -> Prolog:
    """Find the document type and the root, past declarations and comments."""
    position = _past_comments(body, 0)
    doctype = _DOCTYPE.match(body, position)
    if doctype is None:
        return Prolog(root=_root_name(body, position))
    end = _doctype_end(body, position)
    return Prolog(
        root=_root_name(body, _past_comments(body, end)),
        doctype=doctype[1].decode("utf-8", "replace"),
        doctype_span=(position, end),
    )


def without_doctype(body: bytes, prolog: Prolog) -> bytes:
    """Blank out the document type but keep its lines. Raises `MalformedDocument`.

    It may declare HTML's own entities, such as ``nbsp``: the parser does not need that,
    and it is harmless.
    """
    start, end = prolog.doctype_span
    if start == end:
        return body
    if _DOCTYPE.match(body, _past_comments(body, end)):
        raise MalformedDocument("a second document type", body.count(b"\n", 0, end) + 1)
    declaration = body[start:end]
    for match in _ENTITY.finditer(declaration):
        name = match[1].decode("utf-8", "replace")
        if name not in name2codepoint:
            line = body.count(b"\n", 0, start + match.start()) + 1
            cause = f"the document type declares an entity of its own: {name[:80]}"
            raise MalformedDocument(cause, line)
    return body[:start] + b"\n" * declaration.count(b"\n") + body[end:]


def _past_comments(body: bytes, position: int) -> int:
    """The position after white space, processing instructions and comments."""
    while skipped := _SKIPPED.match(body, position):
        position = skipped.end()
    return position


def _root_name(body: bytes, position: int) -> str:
    root = _ROOT.match(body, position)
    return root[1].decode("utf-8", "replace") if root else ""


def _doctype_end(body: bytes, start: int) -> int:
    """The position after its ``>``, which may follow an internal subset in brackets."""
    bracket, close = body.find(b"[", start), body.find(b">", start)
    if not 0 <= bracket < close:
        return close + 1 if close >= 0 else len(body)
    subset_end = _SUBSET_END.search(body, bracket)
    return subset_end.end() if subset_end else len(body)


class DocumentKind(StrEnum):
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


def sniff(body: bytes, root: str, doctype: str) -> DocumentKind:
    """Tell the kind of a UTF-8 document without leading white space.

    ``root`` and ``doctype`` are the names in its prolog, "" if missing. Raises
    `NotAFeed` for a document that is neither markup nor JSON.
    """
    if body.startswith((b"{", b"[")):
        return DocumentKind.JSON
    is_feed = f"<{root}".encode() in _ROOTS  # even with an HTML document type
    if b"\x00" in body[:_SAMPLE] and not is_feed:
        raise NotAFeed("binary data")
    if not body.startswith(b"<"):
        raise NotAFeed("plain text")
    is_html = root.lower() in _HTML_ROOTS or doctype.lower() == "html"
    return DocumentKind.HTML if is_html and not is_feed else DocumentKind.XML


def leading_junk(body: bytes, root: str) -> int:
    """The number of bytes before the actual document; 0 if there are none.

    Scripts of a server may print warnings there, and some documents have comments
    before the XML declaration, where XML allows nothing.
    """
    sample = body[:_SAMPLE]
    if body.startswith((b"{", b"[")) or b"<html" in sample.lower():
        return 0
    roots = (*_ROOTS, f"<{root}".encode()) if root.lower() in _CAPITALS else _ROOTS
    feed = min((at for each in roots if (at := sample.find(each)) >= 0), default=-1)
    declaration = sample.find(b"<?xml")
    if declaration >= 0 and not 0 <= feed < declaration:  # not in an entry
        return declaration
    if body.startswith(b"<") and root.lower() not in _HTML_ROOTS:
        return 0
    return max(feed, 0)


_AS_IT_IS: Final = "strict"


class Repair(Struct, frozen=True, kw_only=True, gc=False):
    """A repair that made a document readable: its name for ``path``, and a text for
    people.
    """

    name: str
    problem: str


class OpenedDocument(Struct, frozen=True, kw_only=True, gc=False):
    """A document ready for its reader.

    ``body`` is UTF-8 without byte order mark or document type, but may not be valid
    yet.
    """

    kind: DocumentKind
    body: bytes
    repairs: tuple[Repair, ...] = ()
    region: Slices | None = None  # all entries, if the last document had the same
    lines_before: int = 0  # lines that were dropped before the body

    def repaired(self, body: bytes, *repairs: Repair) -> OpenedDocument:
        return OpenedDocument(
            kind=self.kind,
            body=body,
            repairs=self.repairs + repairs,
            lines_before=self.lines_before,
        )

    def locate(
        self, error: MalformedDocument | LimitExceeded
    ) -> MalformedDocument | LimitExceeded:
        """The error with its line number counted in the document as fetched."""
        if not self.lines_before or error.line is None:
            return error
        line = error.line + self.lines_before
        if isinstance(error, LimitExceeded):
            return LimitExceeded(error.what, error.limit, line)
        return MalformedDocument(error.cause, line, error.column)

    def note_reading(
        self, parsed: ParsedFeed, path: str = "", outline: Outline | None = None
    ) -> ParsedFeed:
        """The same feed, with the repairs and the path by which it was read added to
        it.
        """
        names = [repair.name for repair in self.repairs] + ([path] if path else [])
        if not names:
            return parsed
        if parsed.path != _AS_IT_IS:
            names.append(parsed.path)
        problems = tuple(repair.problem for repair in self.repairs)
        return replace(
            parsed,
            path="+".join(names),
            problems=problems + parsed.problems,
            outline=outline or parsed.outline,
        )


def open_document(body: bytes, context: ParseContext) -> OpenedDocument:
    """Check, decode and classify a document without parsing it.

    Raises a `FeedError`.
    """
    check_body(body)
    if body.startswith(_BEGINNINGS):
        raise NotAFeed(
            next(kind for start, kind in _SIGNATURES if body.startswith(start))
        )
    if body.startswith((b"{", b"[")) and (json := _open_json(body, context)):
        return json
    return _open_any(body, context)


def _open_json(body: bytes, context: ParseContext) -> OpenedDocument | None:
    """Like `_open_any` for JSON in valid UTF-8, the usual case; None for any other."""
    utf8 = to_utf8(body, context.content_type)
    if utf8.body is not body or utf8.problem:
        return None
    check_json(body)
    return OpenedDocument(kind=DocumentKind.JSON, body=body)


def _open_any(body: bytes, context: ParseContext) -> OpenedDocument:
    prolog = read_prolog(body)
    body = with_usual_uris(body, prolog.root)
    region = find_region(body, prolog.root, context.known)
    utf8 = to_utf8(body, context.content_type, region.spans[0] if region else (0, 0))
    document = OpenedDocument(kind=DocumentKind.XML, body=utf8.body)
    if utf8.problem:
        document = document.repaired(
            utf8.body, Repair(name="bytes", problem=utf8.problem)
        )
    document = _trimmed(document)
    if document.body is not body:
        prolog = read_prolog(document.body)
        usual = with_usual_uris(document.body, prolog.root)
        document = replace(document, body=usual)
    kind = sniff(document.body, prolog.root, prolog.doctype)
    if kind == DocumentKind.HTML:
        raise NotAFeed(HTML_PAGE, discover(document.body, context.url).feeds)
    if kind == DocumentKind.JSON:
        check_json(document.body)
        return replace(document, kind=kind)
    check_xml(document.body, document.lines_before)
    opened = without_doctype(document.body, prolog)
    if opened is not body:
        region = find_region(opened, prolog.root, context.known)
    return OpenedDocument(
        kind=kind,
        body=opened,
        repairs=document.repairs,
        region=region,
        lines_before=document.lines_before,
    )


def _trimmed(document: OpenedDocument) -> OpenedDocument:
    """Drop what precedes the document. Raises `EmptyDocument`."""
    body = document.body.lstrip().removeprefix(BOM_UTF8).lstrip()
    if not body:
        raise EmptyDocument
    lines = document.body.count(b"\n", 0, len(document.body) - len(body))
    begins_well = body.startswith((b"<?xml", b"{"))
    junk = 0 if begins_well else leading_junk(body, read_prolog(body).root)
    if junk:
        problem = f"{junk} bytes before the document were dropped"
        lines += body.count(b"\n", 0, junk)
        document = replace(document, lines_before=lines)
        return document.repaired(body[junk:], Repair(name="trimmed", problem=problem))
    document = replace(document, lines_before=lines) if lines else document
    if body is not document.body and body.startswith(b"<?xml"):
        problem = "blanks before the XML declaration were dropped"
        return document.repaired(body, Repair(name="trimmed", problem=problem))
    return document if body is document.body else document.repaired(body)
