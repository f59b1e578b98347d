"""Read documents that no cheap repair makes well-formed: the last two steps.

First libxml2's own recovery, accepted only if it lost no entry and nothing by which
entries are identified; then feedparser, which reads anything and is slow. Both belong
in a worker process with limits.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree
from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.document import DocumentKind, OpenedDocument, open_document
from protocols.feeds.element import Element, local_name
from protocols.feeds.feed_reading import read_document
from protocols.feeds.repair import repair
from protocols.feeds.xml import read_whole_tree, syntax_error, xml_parser
from protocols.model import ParsedFeed
from protocols.protocol_errors import LimitExceeded, MalformedDocument

_OPAQUE: Final = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
_ESCAPED: Final = re.compile(
    rb"%b|&(?P<name>amp|lt|gt|quot|apos);" % _OPAQUE.pattern, re.DOTALL
)
_NUMBERS: Final = {b"amp": 38, b"lt": 60, b"gt": 62, b"quot": 34, b"apos": 39}
_ENTRIES: Final = frozenset({"item", "entry"})
_NAME: Final = rb"(?:[\w.-]{1,40}:)?(?:item|entry)"
_STARTS: Final = re.compile(rb"<" + _NAME + rb"[\s/>]")
_ENDS: Final = re.compile(rb"</" + _NAME + rb"\s*>|<" + _NAME + rb"(?:\s[^<>]*)?/>")
_PARTS: Final = frozenset(
    {"enclosure", "guid", "id", "link", "pubDate", "published", "title", "updated"}
)
_TEXTS: Final = frozenset({"description", "guid", "link", "pubDate", "title"})
_PART: Final = re.compile(rb"<(?:%b)[\s/>]" % "|".join(sorted(_PARTS)).encode())
_LONGEST_SECOND_TRY: Final = 2_000_000
"""Bytes, for which feedparser needs seconds, as it does for `_MOST_BRACKETS`."""
_MOST_BRACKETS: Final = 50_000


def parse_leniently(body: bytes, context: ParseContext) -> ParsedFeed:
    """Like `protocols.feeds.parse`, then with recovery and feedparser.

    Raises a `FeedError`. For a document that cannot be read at all it is the strict
    parser's error.
    """
    document = open_document(body, context)
    try:
        return read_document(document, context)
    except MalformedDocument as error:
        if document.kind == DocumentKind.JSON:
            raise
        repaired = repair(document)
        parsed = _read_somehow(repaired, context)
        if parsed is None:
            raise
        parsed = _without_incomplete(parsed, repaired)
        if not parsed.entries:
            raise
        return replace(parsed, problems=(str(error), *parsed.problems))


def _read_somehow(document: OpenedDocument, context: ParseContext) -> ParsedFeed | None:
    """Read with libxml2's recovery, or with feedparser if that finds more."""
    root = _recover_tree(document.body)
    visible = _OPAQUE.sub(b"", document.body)
    lost = 0 if root is None else _count_lost_parts(root, visible)
    recovered = None if root is None else _recover(document, root, visible, context)
    if recovered and not (lost and _is_quickly_read(document.body)):
        return recovered
    try:
        parsed = read_with_feedparser(document, context)
    except MalformedDocument:
        return recovered  # or None: then the strict parser's error is raised
    if recovered and (parsed is None or len(parsed.entries) < len(recovered.entries)):
        return recovered
    return parsed


def read_with_feedparser(
    document: OpenedDocument, context: ParseContext
) -> ParsedFeed | None:
    """Read with feedparser. Importing it takes as long as importing all our readers, so
    it is imported when first needed.
    """
    from protocols.feeds import feedparsing

    return feedparsing.read_with_feedparser(document, context)


def _is_quickly_read(body: bytes) -> bool:
    """Whether feedparser reads the body quickly.

    Its worker must not be killed over a document that recovery has read in the main.
    """
    return len(body) <= _LONGEST_SECOND_TRY and body.count(b"<") <= _MOST_BRACKETS


def _recover(
    document: OpenedDocument, root: Element, visible: bytes, context: ParseContext
) -> ParsedFeed | None:
    """Read libxml2's recovered tree; None if it has not as many entries as the text."""
    begun = len(_STARTS.findall(visible))
    try:
        if begun != _count_entries(root):
            return None
        return document.note_reading(
            read_whole_tree(root, document.body, context), "recovered"
        )
    except ValueError:
        # Recovery accepts what lxml itself refuses: names such as "a:", and lone
        # surrogates.
        return None


def _without_incomplete(parsed: ParsedFeed, document: OpenedDocument) -> ParsedFeed:
    """Leave out the last entry if the document is cut off in it."""
    visible = _OPAQUE.sub(b"", document.body)
    last_start = max((match.start() for match in _STARTS.finditer(visible)), default=-1)
    last_end = max((match.end() for match in _ENDS.finditer(visible)), default=0)
    if last_end > last_start:
        return parsed
    problem = "the last entry is incomplete and was left out"
    problems = (*parsed.problems, problem)
    return replace(
        parsed,
        entries=parsed.entries[:-1],
        problems=problems,
        dropped=parsed.dropped + 1,
    )


def _recover_tree(body: bytes) -> Element | None:
    parser = xml_parser(recover=True)
    try:
        root: Element | None = etree.fromstring(_with_numbers(body), parser)
    except etree.XMLSyntaxError:
        return None
    for entry in parser.error_log:
        error = syntax_error(entry.type, entry.message, entry.line)
        if isinstance(error, LimitExceeded):
            raise error
    if root is not None:
        # Recovery leaves unknown references in the tree, as nodes of their own type.
        etree.strip_elements(root, etree.Entity, with_tail=False)
        _lift_entries(root)
    return root


def _with_numbers(body: bytes) -> bytes:
    """Write ``&#60;`` for ``&lt;``, and the other four likewise.

    After its first error libxml2 drops named references from texts, but reads numeric
    ones.
    """
    return _ESCAPED.sub(_as_number, body)


def _as_number(match: re.Match[bytes]) -> bytes:
    name = match["name"]
    return b"&#%d;" % _NUMBERS[name] if name else match[0]


def _lift_entries(root: Any) -> None:
    """Move entries out of elements that were never closed, back among the other
    entries.

    Otherwise ``<ttl>60<ttl>`` would contain all entries after it, and an item without
    an end tag the next item.
    """
    entries = [each for each in root.iter() if local_name(each.tag) in _ENTRIES]
    if not entries or entries[0] is root:
        return
    channels = (child for child in root if local_name(child.tag) == "channel")
    home = next(channels, root)
    if all(entry.getparent() in (home, root) for entry in entries):
        return
    for entry in entries:
        if entry.tag == entries[0].tag:
            home.append(entry)


def _count_lost_parts(root: Any, visible: bytes) -> int:
    """The number of ids, links, titles and dates of entries that are in no entry.

    Where a tag cannot be read, or unescaped HTML has an end tag too many or too few,
    recovery drops them, or puts them after the entry or into a text. Whatever follows
    the last whole entry may have been cut off, and does not count.
    """
    ends = [match.end() for match in _ENDS.finditer(visible)]
    start = _STARTS.search(visible)
    if not ends or start is None:
        return 0
    written = len(_PART.findall(visible, start.start(), ends[-1]))
    found = {
        part
        for entry in root.iter()
        if local_name(entry.tag) in _ENTRIES
        for part in entry.iter()
        if local_name(part.tag) in _PARTS
        and not any(local_name(each.tag) in _TEXTS for each in part.iterancestors())
    }
    return max(0, written - len(found))


def _count_entries(root: Element) -> int:
    names = (local_name(element.tag) for element in root.iter())
    return sum(name in _ENTRIES for name in names)
