"""Nothing that a feed says is silently lost.

Each text and each attribute of documents that have all the namespaces we know, and of
such as well-known services write, is somewhere in the feed or in an entry; what is not,
and why, is written down here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from protocols.dates import parse_date
from protocols.feeds import parse
from protocols.feeds.namespaces import NAMESPACES
from protocols.model import Entry, Text
from tests.protocols.feeds.carried import leaves, lost_values, values_of
from tests.support.golden import CONTEXT, DATA, reading

BASE = "https://all.example/"

DROPPED = {
    r"/(rss|feed)@version": "the format says it",
    r"item/guid@isPermaLink": "whether the id is an address: then it is a link, too",
    r".*@mode": "how Atom 0.3 encodes a text, which is decoded",
    r".*@xml:(base|lang|space)": "done: addresses are absolute, the entry's language is"
    " one; that of a single text has no place",
    r"rdf:Seq/rdf:li@resource": "RDF's list of its own items",
    r"(channel|item)/language": "a language: its tag has another case",
    r"author/gd:image@(rel|width|height)": "a portrait is a link of its author",
}
"""Places, as patterns, and why what is there is dropped."""


SERVICES = {
    *("arxiv", "blogger", "flickr", "github-commits", "github-releases", "hackernews"),
    *("mastodon", "medium", "podcast20", "reddit", "stackexchange", "substack"),
    *("wordpress", "youtube"),
}


def documents() -> list[Path]:
    return sorted(
        path
        for format in ("rss", "rdf", "atom")
        for path in (DATA / format).glob("*.xml")
        if path.stem.startswith("everything") or path.stem in SERVICES
    )


@pytest.mark.parametrize(
    "document", documents(), ids=lambda path: str(path.relative_to(DATA))
)
def test_every_text_and_attribute_is_in_the_feed_or_an_entry(document: Path) -> None:
    body = document.read_bytes()
    read = reading(document)
    said = [read["feed"], read["entries"], read.get("deletions", [])]
    lost = [
        value
        for value in lost_values(body, said, BASE)
        if not any(re.fullmatch(pattern, value.place) for pattern in DROPPED)
    ]
    assert lost == []


def test_what_is_said_to_be_dropped_is_there_to_be_dropped() -> None:
    places = {v.place for each in documents() for v in values_of(each.read_bytes())}
    for pattern in DROPPED:
        assert any(re.fullmatch(pattern, place) for place in places), pattern


def test_all_known_namespaces_are_in_the_documents() -> None:
    everything = "\n".join(each.read_text(encoding="utf-8") for each in documents())
    unused = {
        prefix
        for prefix, uris in NAMESPACES.items()
        if not any(f'"{uri}"' in everything for uri in uris if uri)
    }
    assert unused == set()


def test_every_value_of_a_json_feed_is_in_the_feed_or_an_item() -> None:
    document = DATA / "jsonfeed" / "everything.feed.json"
    written = json.loads(document.read_text(encoding="utf-8"))
    read = reading(document)
    said = "\n".join(leaves([read["feed"], read["entries"]]))
    del written["version"]  # the format says it
    lost = [
        value
        for value in leaves(written)
        if value not in said and _moment(value) not in said
    ]
    assert lost == []


def test_what_a_json_feed_says_in_another_type_is_an_extension() -> None:
    item = {
        "id": "1",
        "author": "Jo",
        "attachments": {"url": "https://a.example/1.mp3"},
        "tags": "a, b",
        "language": ["en"],
    }
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "hubs": {"type": "WebSub", "url": "https://hub.example/"},
        "items": [item],
    }
    parsed = parse(json.dumps(document).encode(), CONTEXT)
    assert parsed.feed.extensions == {"jsonfeed": {"hubs": document["hubs"]}}
    del item["id"]
    assert parsed.entries[0].extensions == {"jsonfeed": item}


def _moment(text: str) -> str:
    moment = parse_date(text)
    return moment.isoformat() if moment else text


NAMED = " ".join(
    f'xmlns:{prefix}="{NAMESPACES[prefix][0]}"'
    for prefix in ("atom", "dc", "feedburner", "itunes", "wfw")
)


def entry_with(elements: str) -> Entry:
    item = f"<item><guid>1</guid>{elements}</item>"
    document = f"<rss {NAMED}><channel>{item}</channel></rss>"
    return parse(document.encode(), CONTEXT).entries[0]


@pytest.mark.parametrize(
    "name",
    [
        "dc:title",
        "dc:description",
        "itunes:summary",
        "wfw:commentRss",
        "feedburner:origLink",
        "comments",
        "itunes:keywords",
        "itunes:category",
    ],
)
def test_an_element_without_content_says_nothing(name: str) -> None:
    assert entry_with(f"<{name}/>") == entry_with("")


def test_of_two_links_to_one_place_the_other_is_kept_too() -> None:
    entry = entry_with(
        '<link>https://a.example/</link><link href="https://a.example/" title="A"/>'
        '<atom:link href="https://a.example/" title="B"/>'
    )
    assert [link.title for link in entry.links] == [""]
    assert [entry.extensions[each]["link"]["title"] for each in ("rss", "atom")] == [
        "A",
        "B",
    ]


def test_what_is_kept_is_still_read() -> None:
    entry = entry_with("<itunes:summary>Some <b>bold</b> words</itunes:summary>")
    assert entry.summary == Text(value="Some bold words")
    assert entry.extensions["itunes"]["summary"] == {"markup": "Some <b>bold</b> words"}


def test_a_category_holds_others_and_strangers() -> None:
    entry = entry_with(
        '<itunes:category text="A"><itunes:category text="B"/><dc:type>C</dc:type>'
        "</itunes:category>"
    )
    assert [each.term for each in entry.categories] == ["A", "B"]
    assert entry.extensions["itunes"]["category"]["dc:type"] == "C"


def test_a_replaced_link_is_canonical_and_stands_in_for_a_missing_one() -> None:
    original = "<feedburner:origLink>https://a.example/1</feedburner:origLink>"
    link = "<link>https://proxy.example/1</link>"
    relations = [each.rel for each in entry_with(link + original).links]
    assert relations == ["alternate", "canonical"]
    assert {each.rel for each in entry_with(original).links} == set(relations)


@pytest.mark.parametrize("again", ["<title>A</title>", "<title/>"])
def test_what_is_said_twice_is_said_once(again: str) -> None:
    assert entry_with(f"<title>A</title>{again}") == entry_with("<title>A</title>")
