"""Which entries are pages, and under which URL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hub.collections.judging import judge_entry
from protocols.model import Entry, Feed
from storage.packing import pack
from storage.records import EntryId, FeedId, JudgedEntry, PageNews, StoredEntry
from tests.support.public_feeds import an_entry
from tests.support.storage_scene import START

HUB = "https://hub.example"
NOW = START + timedelta(days=1)


def news(entry: Entry, **more: object) -> PageNews:
    stored = StoredEntry(
        id=EntryId(5),
        feed_id=FeedId(3),
        key=entry.key,
        revision=2,
        deleted=False,
        body=pack(entry),
    )
    found = PageNews(
        entry_id=EntryId(5),
        entry=stored,
        dated=START,
        is_public=True,
        section="News & more",
        head=pack(Feed(title="A")),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def judged(entry: Entry, **more: object) -> JudgedEntry:
    return judge_entry(news(entry, **more), HUB, NOW)


def test_a_public_entry_is_a_page_under_its_link() -> None:
    assert judged(an_entry("a")) == JudgedEntry(
        entry_id=EntryId(5),
        revision=2,
        url="https://example.org/a",
        section="News-more",
        dated=START,
        modified=START,
    )


def test_one_without_a_link_is_under_its_topic() -> None:
    assert judged(an_entry("a", links=())).url == f"{HUB}/topics/3.json#5"


@pytest.mark.parametrize(
    ("dates", "modified"),
    [
        ({"published": START}, START),
        ({"updated": START + timedelta(hours=1)}, START + timedelta(hours=1)),
        ({"published": NOW + timedelta(days=9)}, NOW),
        ({"published": None}, NOW),
    ],
)
def test_it_is_as_old_as_its_feed_says_but_not_of_tomorrow(
    dates: dict[str, object], modified: object
) -> None:
    assert judged(an_entry("a", **dates)).modified == modified


@pytest.mark.parametrize(
    ("entry", "more"),
    [
        (an_entry("a"), {"is_public": False}),
        (an_entry("a", unlisted=True), {}),
        (an_entry("a"), {"head": pack(Feed(unlisted=True))}),
    ],
)
def test_what_not_everybody_may_see_is_no_page(
    entry: Entry, more: dict[str, object]
) -> None:
    none = JudgedEntry(entry_id=EntryId(5), revision=2)
    assert judged(entry, **more) == none


def test_a_withdrawn_entry_is_none_and_one_not_kept_is_only_dropped() -> None:
    found = news(an_entry("a"))
    assert found.entry is not None
    withdrawn = replace(found, entry=replace(found.entry, deleted=True))
    assert judge_entry(withdrawn, HUB, NOW) == JudgedEntry(
        entry_id=EntryId(5), revision=2
    )
    dropped = judge_entry(replace(found, entry=None), HUB, NOW)
    assert dropped == JudgedEntry(entry_id=EntryId(5), revision=0, is_dropped=True)


def test_a_feed_without_a_document_yet_has_a_bare_head() -> None:
    assert judged(an_entry("a"), head=None).url
