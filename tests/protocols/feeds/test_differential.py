"""Our reading of every golden document beside that of two other parsers.

Each difference is of a kind named here, with the reason why ours is the better one.
`fastfeedparser` is the second parser because it is kept up, installs without a
compiler, shares no code with `feedparser`, and was the nearest to the consensus of
five parsers on the core fields of real feeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from protocols.feeds.lenient import parse_leniently
from tests.protocols.feeds.other_parsers import (
    OTHER_PARSERS,
    Document,
    Item,
    Unreadable,
    as_document,
)
from tests.support.golden import CONTEXT, DATA, golden_documents


@dataclass(frozen=True, slots=True)
class Difference:
    document: str
    parser: str
    field: str
    ours: Any
    theirs: Any


@dataclass(frozen=True, slots=True)
class Kind:
    """Differences of one field, told by their values, or by the document alone."""

    parser: str
    field: str
    reason: str
    documents: str = ""
    shape: str = "any"

    def explains(self, found: Difference) -> bool:
        return (
            (self.parser, self.field) == (found.parser, found.field)
            and (not self.documents or found.document in self.documents.split())
            and _has_shape(self.shape, found)
        )


def _has_shape(shape: str, found: Difference) -> bool:
    match shape:
        case "ours is empty":
            return not found.ours
        case "theirs is empty":
            return not found.theirs
        case "theirs is resolved":
            return bool(found.theirs == urljoin(CONTEXT.url, found.ours))
        case "theirs lacks some":
            return bool(found.theirs < found.ours)
        case "theirs has more":
            return bool(found.theirs > found.ours)
    return True


FEEDPARSER, FAST = "feedparser", "fastfeedparser"
KINDS = (
    Kind(
        FEEDPARSER,
        "readable",
        "it does not read JSON Feed, RDF under a base, or a channel without its rss",
        "jsonfeed/complete.feed.json jsonfeed/everything.feed.json "
        "jsonfeed/version1.feed.json rdf/base.xml rss/channelalone.xml",
    ),
    Kind(
        FEEDPARSER,
        "entries",
        "a second entry with the same id is the same one, and a cut-off one none",
        "rss/identity.xml rss/truncated.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.id",
        "it makes an id absolute like a link; without xml:base an id is what it says",
        shape="theirs is resolved",
    ),
    Kind(
        FEEDPARSER,
        "entry.id",
        "it prefers dc:identifier to the guid",
        "rss/modules.xml",
    ),
    Kind(
        FEEDPARSER,
        "link",
        "it takes the id for the link of a feed that has none",
        shape="ours is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.link",
        "it takes the id for the link of an entry that has none",
        shape="ours is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.link",
        "a relation may be written as a URI (RFC 4287 4.2.7.2), rdf:about is an "
        "address (RSS 1.0 5.5)",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.link",
        "relative links of RSS are written for the site, not for the document",
        "rss/sitebase.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.title",
        "the title for podcasts is one where there is no other",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "subtitle",
        "the description is longer than the subtitle for podcasts, and the feed's own",
        "rss/podcast.xml",
    ),
    Kind(
        FEEDPARSER,
        "language",
        "it does not take xml:lang for the language of the feed",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.published",
        "dc:date and Atom 0.3's created are when an entry was first there",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.published",
        "it takes seconds, weeks, days of the year and Chinese for other dates, and "
        "leaves out the time before a zone that is a name",
        "rss/chinese.xml rss/dates.xml",
    ),
    Kind(
        FEEDPARSER,
        "subtitle",
        "it loses the description where there is a summary for podcasts before it",
        "rss/libsyn.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.updated",
        "it takes dc:date for the time of a change",
        shape="ours is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.text",
        "it drops text it cannot decode, or whose type it does not know, and does not "
        "take a podcast's summary for one",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.text",
        "an entry has one content, the first; media:description is for the file",
        "atom/complete.xml atom/everything03.xml rss/markup.xml rss/mastodon.xml",
        shape="theirs has more",
    ),
    Kind(
        FEEDPARSER,
        "entry.text",
        "media:description is for the file; the entry has words of its own",
        "rss/media.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.enclosures",
        "media:content is a file that is offered",
        shape="theirs is empty",
    ),
    Kind(
        FEEDPARSER,
        "entry.enclosures",
        "it does not resolve the address of a file, nor mind that there is none",
        "rss/relative.xml rss/modules.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.authors",
        "it finds an address where only part of one is",
        "rss/people.xml rss/joomla.xml",
    ),
    Kind(
        FEEDPARSER,
        "entry.authors",
        "the authors of an Atom feed are those of its entries (RFC 4287 4.2.1)",
        shape="theirs is empty",
    ),
    *(
        Kind(
            FEEDPARSER,
            f"entry.{field}",
            "it reads the objects of an activity as if they were the entry",
            "atom/activity.xml",
        )
        for field in ("link", "published", "text", "categories")
    ),
    *(
        Kind(
            FEEDPARSER,
            field,
            "it lets modules, later elements and objects of activities replace the "
            "format's own first word, and knows fewer modules",
            "atom/everything.xml rss/everything.xml",
        )
        for field in (
            "title",
            "subtitle",
            *(f"entry.{each.name}" for each in fields(Item)),
        )
    ),
    Kind(
        FAST,
        "readable",
        "it does not read lone entries and channels, Atom without its namespace, or "
        "authors of JSON Feed that are no objects",
        "atom/entry.xml atom/nonamespace.xml rss/channelalone.xml "
        "jsonfeed/complete.feed.json",
    ),
    Kind(
        FAST,
        "entries",
        "a second entry with the same id is the same one, and a cut-off one none",
        "rss/identity.xml rss/truncated.xml",
    ),
    Kind(
        FAST,
        "entries",
        "it does not find RSS in another namespace than the usual",
        "rdf/base.xml rdf/rss090.xml rss/namespaced.xml",
    ),
    *(
        Kind(
            FAST,
            field,
            "it reads no xml:lang, RSS 0.90, Atom 0.3 tagline, dc:language or "
            "module's subtitle",
            shape="theirs is empty",
        )
        for field in ("title", "link", "subtitle", "language")
    ),
    Kind(
        FAST,
        "title",
        "it stops at the first element or unknown reference, and reads Latin-1 where "
        "the bytes are UTF-8",
        "rss/illformed.xml rss/markup.xml rss/mislabelled.xml rss/old091.xml",
    ),
    Kind(
        FAST,
        "link",
        "it resolves nothing",
        "atom/complete.xml atom/everything.xml atom/everything03.xml rss/relative.xml",
    ),
    Kind(
        FAST,
        "link",
        "it takes the address of the feed for that of its site",
        shape="ours is empty",
    ),
    Kind(
        FAST,
        "entry.categories",
        "it reads no subjects and keywords of modules",
        shape="theirs lacks some",
    ),
    Kind(
        FAST,
        "entry.id",
        "it takes the link for the id of an entry that has none",
        shape="ours is empty",
    ),
    Kind(
        FAST,
        "entry.id",
        "it does not know xml:base nor ids that are numbers, and prefers "
        "dc:identifier to the guid",
        "atom/complete.xml rss/everything.xml rss/modules.xml "
        "jsonfeed/everything.feed.json",
    ),
    Kind(
        FAST,
        "entry.link",
        "it resolves nothing, and does not know where scripts lead to",
        "atom/complete.xml atom/everything.xml atom/everything03.xml "
        "rss/everything.xml rss/relative.xml rss/sitebase.xml",
    ),
    Kind(
        FAST,
        "entry.link",
        "rdf:about is an address (RSS 1.0 5.5), and so is a guid that says it is; "
        "Atom's link is one in RSS, too",
        "rdf/rss10.xml rss/guids.xml",
        shape="theirs is empty",
    ),
    Kind(
        FAST,
        "entry.published",
        "it knows days, not months, of other scripts, takes seconds and days of a year "
        "for days of this month, and does not subtract what GMT+2 is ahead",
        "rss/dates.xml",
    ),
    Kind(
        FAST,
        "entry.title",
        "it reads no xhtml titles, nor those that only a module has",
        shape="theirs is empty",
    ),
    Kind(FAST, "entry.title", "it loses bytes that are not UTF-8", "rss/illformed.xml"),
    Kind(
        FAST,
        "entry.published",
        "it takes a number in the id for a date, or the change for the beginning",
        shape="ours is empty",
    ),
    Kind(
        FAST,
        "entry.published",
        "Atom 0.3's created is when an entry was first there",
        shape="theirs is empty",
    ),
    Kind(
        FAST,
        "entry.text",
        "it reads no xhtml, no markup that is not escaped, no media:description",
        shape="theirs lacks some",
    ),
    Kind(
        FAST,
        "entry.text",
        "it does not decode base64",
        "atom/atom03.xml atom/everything03.xml",
    ),
    Kind(
        FAST,
        "entry.authors",
        "it has room for one author",
        shape="theirs lacks some",
    ),
    Kind(
        FAST,
        "entry.authors",
        "it takes addresses for names",
        "rss/people.xml rss/everything.xml rss/joomla.xml",
    ),
    Kind(
        FAST,
        "entry.enclosures",
        "it takes no Atom link and no media:content for a file",
        shape="theirs lacks some",
    ),
    Kind(FAST, "entry.enclosures", "it resolves nothing", "rss/relative.xml"),
)


def _differences(path: Path) -> Iterator[Difference]:
    body, name = path.read_bytes(), str(path.relative_to(DATA))
    ours = as_document(parse_leniently(body, CONTEXT))
    for parser, read in OTHER_PARSERS.items():
        try:
            theirs = read(body, CONTEXT.url)
        except Unreadable:
            yield Difference(name, parser, "readable", True, False)
            continue
        for field, mine, other in _values(ours, theirs):
            if mine != other:
                yield Difference(name, parser, field, mine, other)


def _values(ours: Document, theirs: Document) -> Iterator[tuple[str, Any, Any]]:
    for field in ("title", "link", "subtitle", "language"):
        yield field, getattr(ours, field), getattr(theirs, field)
    if len(ours.entries) != len(theirs.entries):
        yield "entries", len(ours.entries), len(theirs.entries)
        return
    for mine, other in zip(ours.entries, theirs.entries, strict=True):
        for each in fields(Item):
            name = f"entry.{each.name}"
            yield name, getattr(mine, each.name), getattr(other, each.name)


READ_BY_OTHERS = [path for path in golden_documents() if path.parent.name != "creator"]
"""Neither of them knows a creator's feed.json."""


@pytest.mark.parametrize(
    "document", READ_BY_OTHERS, ids=lambda path: str(path.relative_to(DATA))
)
def test_every_difference_from_other_parsers_is_explained(document: Path) -> None:
    unexplained = [
        found
        for found in _differences(document)
        if not any(kind.explains(found) for kind in KINDS)
    ]
    assert not unexplained


def test_every_explanation_explains_something() -> None:
    found = [each for path in READ_BY_OTHERS for each in _differences(path)]
    idle = [kind for kind in KINDS if not any(map(kind.explains, found))]
    assert not idle
