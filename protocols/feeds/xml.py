"""Read XML documents strictly: well-formed as they are, or after cheap repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from lxml import etree
from msgspec.structs import replace

from protocols.feeds.atom import read_atom
from protocols.feeds.context import ParseContext
from protocols.feeds.document import OpenedDocument
from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.limits import MAX_DEPTH, MAX_TEXT_BYTES
from protocols.feeds.long_texts import LongTexts, StandInFound, shorten
from protocols.feeds.namespaces import (
    ATOM,
    ATOM_03,
    NAMESPACES,
    has_containers_in_capitals,
    use_usual_names,
)
from protocols.feeds.repair import repair
from protocols.feeds.rss import read_rdf, read_rss
from protocols.feeds.scope import Scope
from protocols.model import ParsedFeed
from protocols.protocol_errors import (
    FeedError,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from protocols.xml_syntax import SAFE

Result = TypeVar("Result")
TreeReader: TypeAlias = Callable[[Element, bytes, LongTexts], Result]

_READERS: Final[Mapping[str, Callable[[Element, Scope], ParsedFeed]]] = {
    "channel": read_rss,
    "entry": read_atom,
    "feed": read_atom,
    "rdf": read_rdf,
    "rss": read_rss,
}
_OTHER_ROOTS: Final = {
    "opml": "an OPML list",
    "sitemapindex": "a sitemap index",
    "svg": "an SVG image",
    "urlset": "a sitemap",
}
_OF_ATOM: Final = frozenset({ATOM[1:-1], ATOM_03[1:-1]})
_OF_RSS: Final = frozenset(NAMESPACES["rss"])
_RESOURCE_LIMIT: Final = etree.ErrorTypes.ERR_RESOURCE_LIMIT


def parse_xml(document: OpenedDocument, context: ParseContext) -> ParsedFeed:
    """Read an RSS, RDF or Atom document, repaired if necessary. Raises a
    `FeedError`.
    """
    parsed = read_shortened(
        document.body,
        lambda root, body, texts: read_whole_tree(root, body, context, texts),
    )
    if parsed is not None:
        return document.note_reading(parsed)
    document, root = build_tree(document)
    return document.note_reading(read_whole_tree(root, document.body, context))


def read_shortened(body: bytes, read: TreeReader[Result]) -> Result | None:
    """Read without the long texts; ``None`` if the result might not be the same.

    ``read`` is given the tree, the shortened body, and the texts to hand out.
    """
    shortened = shorten(body)
    if shortened is None:
        return None
    body, texts = shortened
    try:
        result = read(parse_tree(body), body, texts)
    except (FeedError, StandInFound):
        return None  # parsing the whole document gives the right error
    return None if texts.are_left else result


def build_tree(document: OpenedDocument) -> tuple[OpenedDocument, Element]:
    """Build the tree. Returns it after the document it was built from, maybe
    repaired.
    """
    try:
        return document, parse_tree(document.body)
    except MalformedDocument:
        repaired = repair(document)
        if repaired is document:
            raise
        return repaired, parse_tree(repaired.body)


def parse_tree(body: bytes) -> Element:
    """Build the tree. Raises `MalformedDocument` or `LimitExceeded`.

    The parser bounds depth and text sizes itself (no ``huge_tree``); the document type
    has been removed, so that there is nothing to expand and nothing to load.
    """
    try:
        root: Element = etree.fromstring(body, xml_parser())
    except etree.XMLSyntaxError as error:
        raise syntax_error(error.code, error.msg or "", error.lineno or 1) from None
    return root


def xml_parser(*, recover: bool = False) -> etree.XMLParser:
    """A parser for one document: lxml's parsers must not be shared between threads.

    Elements are never looked up by ``xml:id``. Collecting these ids would take time,
    and refuse documents that have one twice, which are well-formed.
    """
    return etree.XMLParser(**SAFE, recover=recover, collect_ids=False)


def syntax_error(
    code: int, message: str, line: int
) -> MalformedDocument | LimitExceeded:
    """Convert libxml2's error to ours."""
    cause = message.strip().partition(", line ")[0].partition("\n")[0]
    if code != _RESOURCE_LIMIT:
        said = f": {cause}" if cause else ""
        return MalformedDocument(f"not well-formed XML{said}", line)
    if "depth" in cause.lower():
        return LimitExceeded("the depth of nested elements", MAX_DEPTH, line)
    return LimitExceeded("the size of one text in bytes", MAX_TEXT_BYTES, line)


def read_whole_tree(
    root: Element, body: bytes, context: ParseContext, texts: LongTexts | None = None
) -> ParsedFeed:
    """Like `read_tree`, whatever the case of the names. Raises `NotAFeed`."""
    parsed = read_tree(root, body, context, texts)
    if parsed.entries or not has_containers_in_capitals(root):
        return parsed
    use_usual_names(root)
    parsed = read_tree(root, body, context, texts)
    problem = "names of elements in capitals were read as the usual ones"
    return replace(parsed, path="names", problems=(problem, *parsed.problems))


def read_tree(
    root: Element, body: bytes, context: ParseContext, texts: LongTexts | None = None
) -> ParsedFeed:
    """Read a tree by the name of its root. Raises `NotAFeed`, which names the root.

    ``texts`` are the texts that the body lacks, as `read_shortened` passes them.
    """
    name = local_name(root.tag)
    reader = _READERS.get(name.lower())
    if reader is None or (name == "entry" and not root.tag.startswith((ATOM, ATOM_03))):
        kind = _OTHER_ROOTS.get(name.lower(), "an XML document")
        raise NotAFeed(f"{kind} (its root is <{name[:80]}>)")
    if reader is read_atom:
        _rename(root, namespace_of(root.tag), _OF_ATOM, ATOM)
    else:
        _rename(root, _rss_namespace(root), _OF_RSS, "")
    return reader(root, Scope.of_document(context, texts).within_root(root, body))


def _rss_namespace(root: Element) -> str:
    """The namespace of the channel or the items: in RDF the root has another one."""
    for child in root:
        if local_name(child.tag) in ("channel", "item"):
            return namespace_of(child.tag)
    return namespace_of(root.tag)


def _rename(root: Element, namespace: str, known: frozenset[str], usual: str) -> None:
    """Rename elements of an unknown namespace to the format's usual one."""
    if namespace in known:
        return
    for element in root.iter():
        if namespace_of(element.tag) == namespace:
            element.tag = usual + local_name(element.tag)
