"""A document made ready for its reader: within limits, in UTF-8, of a known kind."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.errors import (
    HTML_PAGE,
    EmptyDocument,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from protocols.feeds.context import ParseContext
from protocols.feeds.discovery import discover
from protocols.feeds.encoding import to_utf8
from protocols.feeds.limits import check_body, check_json, check_xml
from protocols.feeds.names import with_usual_uris
from protocols.feeds.prolog import read_prolog, without_doctype
from protocols.feeds.region import find_region
from protocols.feeds.slices import Slices
from protocols.feeds.sniff import Kind, leading_junk, refuse_binary, sniff
from protocols.model import Outline, ParsedFeed

_AS_IT_IS: Final = "strict"


class Repair(Struct, frozen=True, kw_only=True, gc=False):
    """Something done to make a document readable: for ``path``, and for people."""

    name: str
    problem: str


class Document(Struct, frozen=True, kw_only=True, gc=False):
    """``body`` is UTF-8 without mark or document type, though maybe not valid yet."""

    kind: Kind
    body: bytes
    repairs: tuple[Repair, ...] = ()
    region: Slices | None = None  # all entries, if they are the last document's
    lines_before: int = 0  # that were dropped

    def repaired(self, body: bytes, *repairs: Repair) -> Document:
        return Document(
            kind=self.kind,
            body=body,
            repairs=self.repairs + repairs,
            lines_before=self.lines_before,
        )

    def locate(
        self, error: MalformedDocument | LimitExceeded
    ) -> MalformedDocument | LimitExceeded:
        """The error with its line in what was fetched."""
        if not self.lines_before or error.line is None:
            return error
        line = error.line + self.lines_before
        if isinstance(error, LimitExceeded):
            return LimitExceeded(error.what, error.limit, line)
        return MalformedDocument(error.cause, line, error.column)

    def sign(
        self, parsed: ParsedFeed, path: str = "", outline: Outline | None = None
    ) -> ParsedFeed:
        """The same feed with this document's way of being read written on it."""
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


def open_document(body: bytes, context: ParseContext) -> Document:
    """Check, decode and classify. Raises every `FeedError` there is; builds nothing."""
    check_body(body)
    refuse_binary(body)
    return _open_json(body, context) or _open_any(body, context)


def _open_json(body: bytes, context: ParseContext) -> Document | None:
    """As `_open_any` for JSON in UTF-8, which most of it is; None for all else."""
    if not body.startswith((b"{", b"[")):
        return None
    utf8 = to_utf8(body, context.content_type)
    if utf8.body is not body or utf8.problem:
        return None
    check_json(body)
    return Document(kind=Kind.JSON, body=body)


def _open_any(body: bytes, context: ParseContext) -> Document:
    prolog = read_prolog(body)
    body = with_usual_uris(body, prolog.root)
    region = find_region(body, prolog.root, context.known)
    utf8 = to_utf8(body, context.content_type, region.spans[0] if region else (0, 0))
    document = Document(kind=Kind.XML, body=utf8.body)
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
    if kind == Kind.HTML:
        raise NotAFeed(HTML_PAGE, discover(document.body, context.url).feeds)
    if kind == Kind.JSON:
        check_json(document.body)
        return replace(document, kind=kind)
    check_xml(document.body, document.lines_before)
    opened = without_doctype(document.body, prolog)
    if opened is not body:
        region = find_region(opened, prolog.root, context.known)
    return Document(
        kind=kind,
        body=opened,
        repairs=document.repairs,
        region=region,
        lines_before=document.lines_before,
    )


def _trimmed(document: Document) -> Document:
    """Without what precedes the document. Raises `EmptyDocument`."""
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
