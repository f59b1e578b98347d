"""Feeds as they change from one fetch to the next, for property tests.

A feed is drawn in parts, changed part by part or byte by byte, and written out. What is
drawn is deliberately odd: entries share ids and links, hold what looks like the
beginning or the end of another one, and stand in comments; heads change what entries
inherit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

ATOM: Final = "http://www.w3.org/2005/Atom"
DC: Final = "http://purl.org/dc/elements/1.1/"
_RDF: Final = (
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ' xmlns="http://purl.org/rss/1.0/"'
)
_BEGINNINGS: Final = {
    "rss": ("<rss {0}><channel {1}>", "</channel></rss>"),
    "rdf": (
        f"<rdf:RDF {_RDF} {{0}}><channel {{1}}><title>T</title></channel>",
        "</rdf:RDF>",
    ),
    "atom": (f'<feed xmlns="{ATOM}" {{0}} {{1}}>', "</feed>"),
    "odd": ("<rss {0}><channel {1}></channel>", "</rss>"),
}
_DECLARED: Final = f'xmlns:dc="{DC}" xmlns:x="urn:x"'
_ATTRIBUTES: Final = (
    _DECLARED,
    f"{_DECLARED} xml:lang='de'",
    f"{_DECLARED} xml:base='https://base.example/a/'",
    f'xmlns:x="urn:y" xmlns:dc="{DC}"',
    "version='2.0'",
)
_CHANNEL_ATTRIBUTES: Final = (
    *("", 'xml:base="/b/"', 'xml:lang="es"', 'xmlns:y="urn:y"'),
)
_IDS: Final = ("", "", "1", "2", "3", "4", "5", " 1 ", "http://e.example/6", "é")
_LINKS: Final = ("", "/a", "https://e.example/b", "https://e.example/c", "d?utm_a=1")
_TITLES: Final = (
    "one",
    "two",
    "three &amp; more",
    "<![CDATA[four <b>]]>",
    "<![CDATA[</item></entry>]]>",
    "<![CDATA[<item><entry>]]>",
    "<!-- </item></entry> -->five",
    "<!-- <item></item><entry></entry> -->six",
    "&nbsp;seven",
    "é ü",
    "bad & worse",
)
_DATES: Final = ("", "2026-01-01T00:00:00Z", "2026-05-01T12:00:00Z", "no date")
_EXTRAS: Final = (
    "",
    "",
    "<dc:creator>Ann</dc:creator>",
    '<dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Bea</dc:creator>',
    "<x:thing a='1'>thing</x:thing>",
    '<enclosure url="https://e.example/1.mp3" type="audio/mpeg"/>',
    '<link rel="enclosure" href="/2.mp3"/>',
    '<summary type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">x<br/></div>'
    "</summary>",
    "<inner><item></item><entry></entry></inner>",
    "<description><![CDATA[<a href='/x'>x</a>]]></description>",
)
_ENTRY_ATTRIBUTES: Final = (
    *("", "", ""),
    ' xml:base="https://other.example/"',
    ' xml:lang="fr"',
    f' xmlns="{ATOM}"',
    ' xmlns=""',
    ' rdf:about="https://e.example/about"',
)
_HEAD_PARTS: Final = (  # the first twelve are in every day's feeds
    *("<title>A feed</title>", "<title>Another title</title>"),
    "<link>https://e.example/b</link>",
    "<link>https://site.example/</link>",
    '<link href="https://e.example/c"/>',
    '<link rel="self" href="https://e.example/feed"/>',
    *("<language>en</language>", "<language>it</language>"),
    "<lastBuildDate>Thu, 01 Jan 2026 00:00:00 GMT</lastBuildDate>",
    "<updated>2026-01-01T00:00:00Z</updated>",
    "<updated>2026-01-02T00:00:00Z</updated>",
    *("<!-- generated -->", "<!-- <item></item> -->", "<?php x ?>"),
    "<image><url>/logo.png</url></image>",
    "<image><item></item><entry></entry></image>",
    "<author><name>Ann</name></author>",
    "<managingEditor>bob@e.example</managingEditor>",
    "<![CDATA[<item>]]>",
    "<ttl>60</ttl>",
    '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="1"/>',
)
_BETWEEN: Final = (
    *("", "\n", "\n  ", "\n", " "),
    *("<!-- x -->", "<title>Late</title>", "text", "<![CDATA[x]]>", "\f"),
    *("<item/>", "<!--", "-->", "<![CDATA[", "]]>"),
)
_SPLICES: Final = (
    *("<item>", "</item>", "<entry>", "</entry>", "<item/>", "<!--", "-->"),
    *("<![CDATA[", "]]>", "<b>", "</b>", '"', "&", "<", ">", "\x00", "\x0b", "<?"),
    *("</channel>", "<channel>", "é", " "),
)
_ENCODINGS: Final = ("", "utf-8", "iso-8859-1", "utf-16", "windows-1252")


@dataclass(frozen=True)
class Item:
    id: str
    link: str
    title: str
    date: str
    extra: str
    attributes: str

    def written(self, kind: str) -> str:
        if kind == "atom":
            link = f'<link href="{self.link}"/>' if self.link else ""
            id = f"<id>{self.id}</id>" if self.id else ""
            date = f"<updated>{self.date}</updated>"
            name = "entry"
        else:
            link = f"<link>{self.link}</link>" if self.link else ""
            id = f"<guid>{self.id}</guid>" if self.id else ""
            date = f"<pubDate>{self.date}</pubDate>"
            name = "item"
        inner = f"{id}{link}<title>{self.title}</title>{date if self.date else ''}"
        return f"<{name}{self.attributes}>{inner}{self.extra}</{name}>"


@dataclass(frozen=True)
class ChangingFeed:
    kind: str
    root: str
    channel: str
    head: tuple[str, ...]
    items: tuple[Item, ...]
    between: tuple[str, ...]  # before each item, and again from the first one on
    tail: tuple[str, ...] = ()
    prolog: str = ""
    encoding: str = ""
    splices: tuple[tuple[int, str], ...] = ()
    cut: int | None = None

    def written(self) -> bytes:
        beginning, end = _BEGINNINGS[self.kind]
        declared = f' encoding="{self.encoding}"' if self.encoding else ""
        items = "".join(
            self.between[number % len(self.between)] + item.written(self.kind)
            for number, item in enumerate(self.items)
        )
        text = (
            f'<?xml version="1.0"{declared}?>{self.prolog}'
            + beginning.format(self.root, self.channel)
            + f"{''.join(self.head)}{items}\n{''.join(self.tail)}{end}"
        )
        for place, splice in self.splices:
            at = place % (len(text) + 1)
            text = text[:at] + splice + text[at:]
        return text[: self.cut].encode(self.encoding or "utf-8", "replace")


def _mostly(tame: Iterable[str], all: Iterable[str]) -> st.SearchStrategy[str]:
    """Draw mostly tame values: documents in which everything is odd are seldom read."""
    tame, all = tuple(tame), tuple(all)
    return st.integers(0, 11).flatmap(
        lambda drawn: st.sampled_from(tame if drawn else all)
    )


def _few(part: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(part, max_size=3).map(tuple)


_items = st.builds(
    Item,
    id=_mostly(_IDS[2:], _IDS),
    link=st.sampled_from(_LINKS),
    title=_mostly(_TITLES[:4], _TITLES),
    date=st.sampled_from(_DATES),
    extra=_mostly(_EXTRAS[:7], _EXTRAS),
    attributes=_mostly(_ENTRY_ATTRIBUTES[:4], _ENTRY_ATTRIBUTES),
)
_without_ids = st.builds(
    Item,
    id=st.just(""),
    link=_mostly(_LINKS[1:], _LINKS),
    title=_mostly(_TITLES[:4], _TITLES),
    date=st.sampled_from(_DATES),
    extra=st.just(""),
    attributes=st.just(""),
)
_heads = _few(_mostly(_HEAD_PARTS[:12], _HEAD_PARTS))
_between = st.lists(_mostly(_BETWEEN[:6], _BETWEEN), min_size=1, max_size=3).map(tuple)
_attributes = _mostly(_ATTRIBUTES[:1], _ATTRIBUTES)
_channel_attributes = _mostly(_CHANNEL_ATTRIBUTES[:1], _CHANNEL_ATTRIBUTES)
_prologs = _mostly(
    ("", "<!-- <item> -->"),
    ("<!DOCTYPE rss>", '<!DOCTYPE x [<!ENTITY nbsp "&#160;">]>'),
)
_encodings = _mostly(_ENCODINGS[:1], _ENCODINGS)


def _lists_of(item: st.SearchStrategy[Item]) -> st.SearchStrategy[tuple[Item, ...]]:
    """Draw lists of items that differ in their ids, or else in their links."""
    apart = st.lists(
        item, min_size=2, max_size=6, unique_by=lambda each: each.id or each.link
    )
    return apart.map(tuple)


feeds = st.builds(
    ChangingFeed,
    kind=st.sampled_from(sorted(_BEGINNINGS)),
    root=_attributes,
    channel=_channel_attributes,
    head=_heads,
    items=_lists_of(_items) | _lists_of(_items) | _lists_of(_without_ids),
    between=_between,
    tail=st.just(()) | _heads,
    prolog=_prologs,
    encoding=_encodings,
)


def _with_items(draw: st.DrawFn, feed: ChangingFeed) -> ChangingFeed:
    """A feed with an item more or less, moved, changed, or repeated."""
    items = feed.items
    number = draw(st.integers(0, max(len(items) - 1, 0)))
    before, here, after = items[:number], items[number : number + 1], items[number:]
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2 | 3:
            return replace(feed, items=(*before, draw(_items), *after))
        case 4 | 5:
            return replace(feed, items=before + after[1:])
        case 6:
            return replace(feed, items=tuple(draw(st.permutations(items))))
        case 7:
            return replace(feed, items=items + here)
        case _:
            edited = [
                replace(draw(_items), id=each.id, link=each.link) for each in here
            ]
            return replace(feed, items=(*before, *edited, *after[1:]))


def _with_surroundings(draw: st.DrawFn, feed: ChangingFeed) -> ChangingFeed:
    changes = st.fixed_dictionaries(
        {},
        optional={
            "head": _heads,
            "tail": _heads,
            "root": _attributes,
            "channel": _channel_attributes,
            "prolog": _prologs,
            "between": _between,
            "encoding": _encodings,
        },
    )
    changed: dict[str, Any] = draw(changes)
    return replace(feed, **changed)


def _broken(draw: st.DrawFn, feed: ChangingFeed) -> ChangingFeed:
    """A feed with something inserted anywhere, or cut off before its end."""
    if draw(st.booleans()):
        return replace(feed, cut=draw(st.none() | st.integers(40, 1_500)))
    splice = (draw(st.integers(0, 3_000)), draw(st.sampled_from(_SPLICES)))
    return replace(feed, splices=(*feed.splices, splice))


@st.composite
def histories(draw: st.DrawFn) -> list[bytes]:
    """The documents of one feed, in the order in which they are fetched."""
    versions = [draw(feeds)]
    for _ in range(draw(st.integers(1, 6))):
        base = draw(st.sampled_from(versions[-3:]))  # two may take turns
        match draw(st.integers(0, 11)):
            case 0:
                versions.append(base)
            case 1:
                versions.append(_broken(draw, base))
            case 2 | 3 | 4:
                versions.append(_with_surroundings(draw, base))
            case _:
                versions.append(_with_items(draw, base))
    return [each.written() for each in versions]
