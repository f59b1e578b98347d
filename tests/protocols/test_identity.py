from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from protocols.identity import (
    LONGEST_KEY,
    Identity,
    checksum,
    content_hash,
    identify,
    key_of_id,
    key_of_link,
)
from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Entry,
    Feed,
    Geo,
    IdSource,
    Link,
    Text,
)


def test_it_stays_the_same_for_good() -> None:
    assert checksum(b"a document").hex() == "b6ed5e8ce6cb88b88c6f58db02e5abc4"


@given(st.binary(), st.binary())
def test_documents_that_differ_have_others(one: bytes, other: bytes) -> None:
    assert (checksum(one) == checksum(other)) == (one == other)


@given(st.binary(min_size=1), st.data())
def test_the_change_of_a_single_byte_shows(
    document: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(document) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = document[:at] + bytes([byte]) + document[at + 1 :]

    assert (checksum(changed) == checksum(document)) == (changed == document)


def test_a_part_of_a_document_need_not_be_copied() -> None:
    assert checksum(memoryview(b"a document")[2:]) == checksum(b"document")


DATE = datetime(2026, 4, 1, tzinfo=UTC)


def identity(**known: Any) -> Identity:
    nothing: dict[str, Any] = {
        "id": "",
        "link": "",
        "enclosure": "",
        "title": "",
        "date": None,
        "content": "",
    }
    return identify(**(nothing | known))


@pytest.mark.parametrize(
    ("id", "key"),
    [
        ("  tag:a.example,2026:1\n", "tag:a.example,2026:1"),
        ("http://A.example/?p=1", "//a.example/?p=1"),
        ("https://a.example/?p=1", "//a.example/?p=1"),
        ("https://a.example/?utm_source=x", "//a.example/?utm_source=x"),
        ("e\u0301", "\u00e9"),
        ("tag:a.example,2026:\n   a  b", "tag:a.example,2026: a b"),
        ("Case", "Case"),
        ("case", "case"),
    ],
)
def test_ids_are_compared_trimmed_composed_and_without_scheme(
    id: str, key: str
) -> None:
    assert key_of_id(id) == key


def test_a_long_id_is_represented_by_its_hash() -> None:
    key = key_of_id("x" * (LONGEST_KEY + 1))
    assert key.startswith("urn:sha256:")
    assert key != key_of_id("x" * (LONGEST_KEY + 2))
    assert len(key_of_id("x" * LONGEST_KEY)) == LONGEST_KEY


def test_links_are_compared_without_tracking_parameters() -> None:
    assert key_of_link("https://a.example/1?utm_source=x#c") == "//a.example/1#c"


@pytest.mark.parametrize(
    ("known", "source", "id"),
    [
        ({"id": "1", "link": "https://a.example/"}, IdSource.FEED, "1"),
        (
            {
                "link": "https://a.example/?utm_source=x",
                "enclosure": "https://b.example/",
            },
            IdSource.LINK,
            "https://a.example/?utm_source=x",
        ),
        (
            {"enclosure": "https://b.example/1.mp3", "title": "t"},
            IdSource.ENCLOSURE,
            "https://b.example/1.mp3",
        ),
    ],
)
def test_an_id_comes_from_the_feed_then_the_link_then_the_enclosure(
    known: dict[str, Any], source: IdSource, id: str
) -> None:
    found = identity(**known)
    assert (found.source, found.id) == (source, id)


def test_an_entry_with_no_address_is_known_by_what_it_says() -> None:
    known: dict[str, Any] = {"title": "t", "date": DATE, "content": "c"}
    found = identity(**known)
    assert found.source == IdSource.CONTENT
    assert found.key == found.id == identity(**known).key
    others = [
        identity(**known | {"title": "u"}),
        identity(**known | {"date": None}),
        identity(**known | {"content": "d"}),
        identity(title="tc", date=DATE),
    ]
    assert len({found.key, *(other.key for other in others)}) == 5


FULL = Entry(
    key="1",
    id="1",
    title="Title",
    summary=Text(value="Summary"),
    content=Text(value="<p>Content</p>"),
    published=DATE,
    links=(
        Link(href="https://a.example/1"),
        Link(href="https://a.example/1.mp3", rel="enclosure"),
    ),
    authors=(Author(name="Jo"),),
    contributors=(Author(name="Kim"),),
    categories=(Category(term="sea"),),
    geo=Geo(latitude=1, longitude=2),
    verbs=("post",),
    object_types=("note",),
    objects=(ActivityObject(id="o", title="O", content=Text(value="c")),),
    rights="all",
    source=Feed(id="origin"),
)


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Titel"},
        {"summary": Text(value="Other")},
        {"content": None},
        {"links": ()},
        {"authors": (Author(name="Jo", email="jo@a.example"),)},
        {"contributors": ()},
        {"categories": (Category(term="sea", scheme="s"),)},
        {"geo": Geo(latitude=1, longitude=3)},
        {"verbs": ("publish",)},
        {"object_types": ()},
        {"objects": (ActivityObject(id="o", title="P", content=Text(value="c")),)},
        {"rights": "none"},
        {"source": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_what_an_entry_says_changes_its_hash(
    change: dict[str, Any],
) -> None:
    assert content_hash(replace(FULL, **change)) != content_hash(FULL)


@pytest.mark.parametrize(
    "change",
    [
        {"published": None},
        {"updated": DATE},
        {"key": "2", "id": "2"},
        {"language": "en"},
        {"extensions": {"slash": {"comments": "4"}}},
        {"content": Text(value=" <p>Content</p>\n")},
        {"links": (*FULL.links, Link(href="https://a.example/t", rel="thumbnail"))},
        {
            "source": FULL.source,
            "links": (
                Link(href="http://a.example/1?utm_source=feed", title="new"),
                replace(FULL.links[1], length=4, type="audio/mpeg"),
            ),
        },
    ],
    ids=lambda change: next(iter(change)),
)
def test_dates_counters_and_addresses_of_pictures_do_not(
    change: dict[str, Any],
) -> None:
    assert content_hash(replace(FULL, **change)) == content_hash(FULL)


def test_the_hash_of_an_entry_is_the_same_in_every_release() -> None:
    """When this has to change, raise `identity.CONTENT_HASH_VERSION`."""
    assert content_hash(Entry(key="1", id="1", title="Title")) == (
        "2:7712ba21c463425fac39c69e22d8f5d315d867e636f1d2934c251445102fca09"
    )
