"""Which entries are pages, and under which URL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.publishing.page_visibility import (
    SiteMatch,
    origin_of,
    owner_of,
    rank_of,
    site_match,
    visibility_of,
)
from protocols.model import Entry, Feed, Link
from storage.packing import pack
from storage.records import (
    EntryId,
    EntryVisibility,
    FeedId,
    FeedNews,
    PageNews,
    StoredEntry,
)
from tests.support.documents import an_entry
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
        category="News & more",
        head=pack(Feed(title="A")),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def judged(entry: Entry, **more: object) -> EntryVisibility:
    return visibility_of(news(entry, **more), HUB, NOW)


def test_a_public_entry_is_a_page_under_its_link() -> None:
    assert judged(an_entry("a", published=START)) == EntryVisibility(
        entry_id=EntryId(5),
        revision=2,
        feed_id=FeedId(3),
        url="https://example.org/a",
        section="News-more",
        owner=3,
        language="en",
        inherits_language=True,
        dated=START,
        modified=START,
    )


def test_one_without_a_link_has_a_path_of_this_hub_and_no_fragment() -> None:
    assert judged(an_entry("a", links=())).url == f"{HUB}/topics/entries/5"


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
    none = EntryVisibility(entry_id=EntryId(5), revision=2)
    assert judged(entry, **more) == none


def test_a_withdrawn_entry_is_none_and_one_not_kept_is_only_dropped() -> None:
    found = news(an_entry("a"))
    assert found.entry is not None
    withdrawn = replace(found, entry=replace(found.entry, deleted=True))
    assert visibility_of(withdrawn, HUB, NOW) == EntryVisibility(
        entry_id=EntryId(5), revision=2
    )
    dropped = visibility_of(replace(found, entry=None), HUB, NOW)
    assert dropped == EntryVisibility(entry_id=EntryId(5), revision=0, is_dropped=True)


def test_a_feed_without_a_document_yet_has_a_bare_head() -> None:
    assert judged(an_entry("a"), head=None).url


@pytest.mark.parametrize(
    ("of_entry", "of_feed", "before", "language", "inherits"),
    [
        ("", "", None, "fr", True),
        ("", "de", None, "de", True),
        ("de", "de", None, "de", True),
        ("de", "", None, "de", False),
        ("de", "it", None, "de", False),
        ("de", "it", True, "it", True),  # the feed has changed its own since
        ("de", "", True, "de", True),
        ("de", "it", False, "de", False),
    ],
)
def test_a_language_that_an_entry_took_over_from_its_feed_follows_the_feed(
    of_entry: str, of_feed: str, before: bool | None, language: str, inherits: bool
) -> None:
    entry = an_entry("a", language=of_entry)
    head = pack(Feed(language=of_feed))
    found = visibility_of(
        news(entry, head=head, inherits_language=before), HUB, NOW, "fr"
    )
    assert (found.language, found.inherits_language) == (language, inherits)


ARTICLE = "https://www.victim.example/article"


def near(*urls: str, home: str = "", url: str = ARTICLE) -> SiteMatch:
    links = (Link(href=home),) if home else ()
    return site_match(url, urls, Feed(links=links))


@pytest.mark.parametrize(
    ("urls", "home", "expected"),
    [
        (["https://www.victim.example/feed"], "", SiteMatch.HOST),
        (["http://VICTIM.example./feed"], "https://other.example/", SiteMatch.HOST),
        (["https://old.example/", "https://victim.example/feed"], "", SiteMatch.HOST),
        (["https://victim.example:8443/feed"], "", SiteMatch.OTHER_PORT),
        (["https://feeds.victim.example/"], "", SiteMatch.DOMAIN),
        (["https://p.example/"], "https://victim.example", SiteMatch.CLAIMED_HOST),
        (["https://p.example/"], "https://a.victim.example", SiteMatch.CLAIMED_DOMAIN),
        (["https://evil.example/victim.example"], "", SiteMatch.ELSEWHERE),
        (["https://victim.example@evil.example/"], "", SiteMatch.ELSEWHERE),
        (["https://victim.example.evil.example/"], "", SiteMatch.ELSEWHERE),
        ([], "", SiteMatch.ELSEWHERE),
    ],
)  # fmt: skip
def test_a_feed_is_as_near_to_a_page_as_the_place_it_comes_from(
    urls: list[str], home: str, expected: SiteMatch
) -> None:
    assert near(*urls, home=home) is expected


def test_neighbours_on_a_shared_host_are_no_owners_of_each_other() -> None:
    page = "https://alice.github.io/post"
    assert near("https://alice.github.io/feed", url=page) is SiteMatch.HOST
    assert near("https://mallory.github.io/feed", url=page) is SiteMatch.ELSEWHERE


def test_where_a_feed_comes_from_goes_before_what_it_says_of_itself() -> None:
    ranks = [rank_of(each, FeedId(10**12)) for each in SiteMatch]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_owners_are_the_host_its_domain_who_claims_it_and_others() -> None:
    assert {each: owner_of(each) for each in SiteMatch} == {
        SiteMatch.HOST: 0,
        SiteMatch.OTHER_PORT: 0,
        SiteMatch.DOMAIN: 1,
        SiteMatch.CLAIMED_HOST: 2,
        SiteMatch.CLAIMED_DOMAIN: 2,
        SiteMatch.ELSEWHERE: 3,
    }


def test_of_feeds_that_only_claim_a_site_the_first_one_keeps_it() -> None:
    claimed = SiteMatch.CLAIMED_HOST
    assert rank_of(claimed, FeedId(3)) < rank_of(claimed, FeedId(4))
    assert rank_of(SiteMatch.HOST, FeedId(3)) == rank_of(SiteMatch.HOST, FeedId(4))


def test_a_page_of_this_hub_is_its_own_whoever_links_to_it() -> None:
    own = judged(an_entry("a", links=()))
    forged = judged(an_entry("a", links=(Link(href=own.url),)))
    assert own.url == forged.url
    assert own.rank < forged.rank


def test_what_pages_depend_on_changes_with_the_place_site_and_listing() -> None:
    def origin(*urls: str, **head: object) -> str:
        feed = FeedNews(
            feed_id=FeedId(3),
            is_moved=False,
            origin=None,
            urls=urls,
            head=pack(Feed(**head)),  # type: ignore[arg-type]
        )
        return origin_of(feed)

    url, home = "https://a.example/feed", (Link(href="https://a.example/"),)
    assert origin(url) == origin("http://a.example/other", title="Another")
    others = [
        origin(url),
        origin(url, links=home),
        origin(url, unlisted=True),
        origin(url, language="de"),
        origin(url, "https://b.example/feed"),
    ]
    assert len(set(others)) == 5
