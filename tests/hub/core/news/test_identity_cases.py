"""The thirty cases of identity and news, in their order, as documents and as fetches.

Where a case is about documents, bytes go in and news comes out; where it is about
fetches, a poller, its parser and SQLite run over made-up sites.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import orjson
import pytest
from lxml import etree
from msgspec.structs import replace

from hub.core.news.entry_diff import UPDATES_A_DAY
from hub.core.news.seen_set import KEPT_DAYS, SeenSet
from protocols.model import Feed, IdSource, Notification
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json
from storage.records import OPERATOR, ClaimTerms, NewSubscription, RecordKind
from tests.support.clock import ManualClock
from tests.support.golden import golden_documents
from tests.support.newsreader import (
    HOUR,
    NOON,
    Newsreader,
    Reading,
    entry,
    post,
    reader_of,
    site_atom,
    site_rss,
)
from tests.support.site_visits import PolledHub, polled_hub
from tests.support.waiting import eventually

DAY = timedelta(days=1)
SITE = "https://site.exempt/feed"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[PolledHub]:
    async with polled_hub(tmp_path / "hub.db", ManualClock(NOON)) as running:
        yield running


def posts(*numbers: int, **more: str) -> bytes:
    return site_rss(*(post(number, **more) for number in numbers))


# --- 1: a first fetch ----------------------------------------------------------


def test_01_the_entries_of_a_first_fetch_are_news_to_nobody() -> None:
    reader = Newsreader()

    first = reader.read(posts(3, 2, 1))

    assert (first.kinds, first.new) == (["baseline"], ())
    assert len(SeenSet.unpack(reader.target.seen)) == 3
    assert reader.read(posts(4, 3, 2, 1)).new == ("Post 4",)


# --- 2, 3: additions -----------------------------------------------------------


def test_02_an_entry_added_at_the_top_is_news() -> None:
    assert reader_of(posts(2, 1)).read(posts(3, 2, 1)).new == ("Post 3",)


@pytest.mark.parametrize(
    "numbers", [(1, 2, 3), (1, 3, 2), (2, 3, 1)], ids=["bottom", "middle", "unordered"]
)
def test_03_an_entry_is_news_wherever_it_is_added(numbers: tuple[int, ...]) -> None:
    assert reader_of(posts(1, 2)).read(posts(*numbers)).new == ("Post 3",)


# --- 4, 5, 6: changes that are none --------------------------------------------


def test_04_another_order_is_no_news() -> None:
    assert reader_of(posts(3, 2, 1)).read(posts(1, 3, 2)).is_silent


def test_05_another_build_date_is_no_news() -> None:
    reader = reader_of(
        site_rss(post(1), head="<lastBuildDate>2026-03-01</lastBuildDate>")
    )
    later = site_rss(post(1), head="<lastBuildDate>2026-03-02</lastBuildDate>")

    assert reader.read(later).is_silent


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            post(1, more="<slash:comments>1</slash:comments>"),
            post(1, more="<slash:comments>2</slash:comments>"),
        ),
        (post(1, text="<p>A</p>1 comment"), post(1, text="<p>A</p>20 comments")),
        (
            post(1, text='A<img src="//pixel.wp.com/b?rand=1" width="1" height="1">'),
            post(1, text='A<img src="//pixel.wp.com/b?rand=2" width="1" height="1">'),
        ),
        (
            post(1, text='A<a href="http://feedads.g.doubleclick.net/~a/1/">'),
            post(1, text='A<a href="http://feedads.g.doubleclick.net/~a/2/">'),
        ),
        (
            post(1, text='A<script nonce="a">1</script>'),
            post(1, text='A<script nonce="b">2</script>'),
        ),
        (
            post(1, text='<a href="/vote?_wpnonce=1">A</a>'),
            post(1, text='<a href="/vote?_wpnonce=2">A</a>'),
        ),
    ],
    ids=["count", "written count", "pixel", "advertisement", "script", "nonce"],
)
def test_06_what_changes_by_itself_is_silent(before: str, after: str) -> None:
    assert reader_of(site_rss(before)).read(site_rss(after)).is_silent


# --- 7 to 10: edits ------------------------------------------------------------


def test_07_a_mended_title_is_an_update_for_those_who_ask_and_no_news() -> None:
    reading = reader_of(posts(2, 1)).read(site_rss(post(2), post(1, title="Post One")))

    assert (reading.new, reading.updated, reading.fresh) == ((), ("Post One",), ())


@pytest.mark.parametrize(
    ("age", "fresh"),
    [(timedelta(minutes=2), ("Entry a",)), (timedelta(minutes=4), ())],
)
def test_08_an_edit_is_pushed_to_everybody_if_its_own_date_is_just_now(
    age: timedelta, fresh: tuple[str, ...]
) -> None:
    reader = reader_of(site_atom(entry("a"), entry("b")))
    edited = entry("a", text="edited", updated=reader.at + HOUR - age)

    reading = reader.read(site_atom(edited, entry("b")))

    assert (reading.new, reading.updated, reading.fresh) == ((), ("Entry a",), fresh)


def test_09_a_rebuilt_site_floods_nobody() -> None:
    names = "abcdefgh"
    reader = reader_of(site_atom(*map(entry, names)))
    now = reader.at + HOUR

    rebuilt = reader.read(site_atom(*(entry(name, updated=now) for name in names)))
    assert rebuilt.is_silent

    now = reader.at + HOUR
    rewritten = (entry(name, updated=now, text="in new clothes") for name in names)
    reading = reader.read(site_atom(*rewritten))
    assert (reading.new, reading.fresh) == ((), ())
    assert len(reading.updated) == len(names)


def test_10_publication_dates_that_jitter_are_silent() -> None:
    reader = reader_of(posts(2, 1))

    for minute in range(5):
        date = format_datetime(NOON + timedelta(minutes=minute))
        assert reader.read(posts(2, 1, date=date)).is_silent


def test_10_so_are_they_where_ids_are_hashes_of_them() -> None:
    def nameless(date: datetime) -> bytes:
        dated = {"guid": "", "link": "", "date": date}
        return site_rss(post(1, **dated), post(2, **dated))

    reader = reader_of(nameless(NOON))

    for minute in range(5):
        assert reader.read(nameless(NOON + timedelta(minutes=minute))).is_silent


# --- 11 to 14: entries and documents that are lost for a time -------------------


def test_11_an_entry_that_vanished_comes_back_silently() -> None:
    reader = reader_of(posts(3, 2, 1), posts(3, 1))

    assert reader.read(posts(3, 2, 1)).is_silent


def test_11_so_it_does_almost_three_months_later() -> None:
    reader = reader_of(posts(*range(9)), posts(0))

    assert reader.read(posts(*range(9)), after=(KEPT_DAYS - 1) * DAY).is_silent


def test_12_an_empty_document_and_then_a_full_one_is_silent() -> None:
    reader = reader_of(posts(2, 1))

    for _ in range(3):
        assert reader.read(
            site_rss(head=f"<ttl>{len(reader.readings)}</ttl>")
        ).is_silent
    assert reader.read(posts(2, 1)).is_silent


def test_12_even_if_it_was_empty_for_a_year() -> None:
    reader = reader_of(posts(2, 1))

    for week in range(52):
        reader.read(site_rss(head=f"<ttl>{week}</ttl>"), after=7 * DAY)
    reading = reader.read(posts(3, 2, 1))

    assert reading.new == ("Post 3",)
    assert reading.polling.gap_at is None


async def test_13_a_truncated_document_is_an_error_or_silent_and_so_is_the_whole_one(
    hub: PolledHub,
) -> None:
    whole = posts(*range(9, 0, -1))
    cuts = iter([len(whole) * part // 7 for part in range(1, 7)])
    hub.sites.pages[SITE] = whole
    feed = await hub.add(SITE)

    for cut in cuts:
        hub.sites.pages[SITE] = whole[:cut]
        await hub.fetch(feed)
        hub.sites.pages[SITE] = whole + b"<!-- %d -->" % cut
        await hub.fetch(feed)

    assert await hub.told(feed) == []
    assert set(await hub.kinds(feed)) <= {"error", "recovered"}


async def test_13_what_is_new_in_a_truncated_document_comes_once(
    hub: PolledHub,
) -> None:
    hub.sites.pages[SITE] = posts(2, 1)
    feed = await hub.add(SITE)
    whole = posts(3, 2, 1)

    hub.sites.pages[SITE] = whole[: whole.index(b"Text of 2")]
    await hub.fetch(feed)
    hub.sites.pages[SITE] = whole
    await hub.fetch(feed)

    assert await hub.told(feed) == ["Post 3"]


async def test_14_an_error_page_with_200_is_an_error_and_loses_nothing(
    hub: PolledHub,
) -> None:
    hub.sites.pages[SITE] = posts(2, 1)
    feed = await hub.add(SITE)

    hub.sites.pages[SITE] = b"<!DOCTYPE html><html><body>Sorry</body></html>"
    polling = await hub.fetch(feed)
    assert "an HTML page" in polling.error
    hub.sites.pages[SITE] = posts(3, 2, 1)
    await hub.fetch(feed)

    assert await hub.kinds(feed) == ["error", "recovered", "entries"]
    assert await hub.told(feed) == ["Post 3"]


# --- 15: mass changes of ids ---------------------------------------------------


def moved(number: int, **more: str) -> str:
    """On another host, with another kind of id."""
    link = f"https://new.example/{number}"
    return post(number, guid=f"https://new.example/?p={number}", link=link, **more)


def test_15_a_move_to_https_is_silent() -> None:
    def served(scheme: str) -> bytes:
        urls = [f"{scheme}://site.example/{number}" for number in range(5)]
        return site_rss(*(post(n, guid=url, link=url) for n, url in enumerate(urls)))

    assert reader_of(served("http")).read(served("https")).is_silent


def test_15_a_move_to_another_host_is_seen_through_by_titles_and_dates() -> None:
    reading = reader_of(posts(*range(6))).read(site_rss(*map(moved, range(6))))

    assert reading.is_silent
    assert reading.polling.rekeyed == 6


def test_15_or_by_the_paths_of_links_where_there_are_no_dates() -> None:
    reader = reader_of(posts(*range(1, 7), date=""))

    reading = reader.read(site_rss(*(moved(number, date="") for number in range(1, 7))))

    assert reading.is_silent
    assert reading.polling.rekeyed == 6


def test_15_a_new_entry_among_those_that_moved_is_news() -> None:
    reader = reader_of(posts(*range(6)))

    reading = reader.read(site_rss(moved(9), *map(moved, range(5))))

    assert reading.new == ("Post 9",)


def test_15_the_status_tells_of_it_and_remembers_it() -> None:
    reader = reader_of(posts(*range(6)))
    quiet = reader.readings[-1].polling

    told = reader.read(site_rss(*map(moved, range(6)))).polling
    later = reader.read(site_rss(*map(moved, range(7)))).polling

    assert quiet.bozo_rank == 0.0
    assert told.message.endswith("parsed 0/6 entries; 6 known under new ids")
    assert told.bozo_rank == 0.5
    assert (later.rekeyed, later.rekeyed_at) == (6, told.last_fetch)
    assert later.bozo_rank == 0.25


def test_15_fewer_than_half_are_no_move() -> None:
    reader = reader_of(posts(*range(6)))
    some = [moved(number, title=f"Again {number}") for number in range(2)]

    assert len(reader.read(site_rss(*some, *map(post, range(2, 6)))).new) == 2


# --- 16 to 19: ids -------------------------------------------------------------


def test_16_the_same_entry_twice_is_one() -> None:
    reading = reader_of(posts(1)).read(site_rss(post(2), post(2), post(1)))

    assert reading.new == ("Post 2",)
    assert reading.polling.dropped == 1
    assert reading.polling.message.endswith("; 1 left out")


def test_16_an_entry_that_is_there_twice_shares_its_link_with_nobody() -> None:
    once = post(1, guid="")
    reader = reader_of(site_rss(once, post(2)))

    reading = reader.read(site_rss(once, once, post(2)))

    assert reading.is_silent
    assert reading.polling.rekeyed == 0


def test_16_of_two_entries_with_the_same_id_the_first_counts() -> None:
    reader = reader_of(posts(1))
    document = site_rss(post(2), post(2, title="Other", text="Other"), post(1))

    assert reader.read(document).new == ("Post 2",)
    assert reader.read(document + b"<!-- again -->").is_silent


def test_16_an_id_that_most_entries_have_is_none() -> None:
    def same(*numbers: int) -> bytes:
        return site_rss(
            *(post(number, guid="https://site.example/#") for number in numbers)
        )

    reader = reader_of(same(3, 2, 1))

    reading = reader.read(same(4, 3, 2, 1))

    assert reading.new == ("Post 4",)
    assert reading.sources == [IdSource.LINK]
    assert reading.polling.generated_ids


def shared(*numbers: int, **more: str) -> bytes:
    """Entries with one guid for all, and others."""
    same = [post(number, guid="g", **more) for number in numbers]
    return site_rss(*same, post(98), post(99))


@pytest.mark.parametrize(
    ("second", "is_another"),
    [
        ({}, False),
        ({"title": "Post 1"}, True),
        ({"link": "https://site.example/1"}, True),
        ({"date": NOON - DAY}, True),
        ({"link": "https://site.example/1", "date": NOON - DAY}, False),
        ({"title": "Post 1", "date": NOON - DAY}, False),
        ({"title": "Post 1", "link": "https://site.example/1"}, False),
    ],
)
def test_16_entries_that_share_an_id_and_differ_in_two_of_link_title_and_date_are_two(
    second: dict[str, object], *, is_another: bool
) -> None:
    other = post(1, guid="g") if not second else post(2, guid="g", **second)
    document = site_rss(post(1, guid="g"), other, post(3), post(4), post(5))

    reading = reader_of(site_rss(post(3), post(4), post(5))).read(document)

    assert len(reading.new) == 1 + is_another
    assert len({each.id for each in reading.entries}) == 1 + is_another


def test_16_thirty_entries_with_one_guid_are_as_many_as_they_have_links() -> None:
    twice = post(1, guid="g")
    document = site_rss(twice, *(post(number, guid="g") for number in range(1, 30)))

    reading = Newsreader().read(document)

    assert len(reading.entries) == 29
    assert reading.polling.dropped == 1


def test_16_versions_of_an_atom_entry_are_one_however_they_are_titled() -> None:
    one = entry("a", link="https://site.example/1", title="Now", updated=NOON)
    former = entry("a", link="https://site.example/1", title="Was", updated=NOON - DAY)
    other = entry("a", link="https://site.example/2", title="Two", updated=NOON - DAY)

    assert len(Newsreader().read(site_atom(one, former)).entries) == 1
    assert len(Newsreader().read(site_atom(one, other)).entries) == 2


@pytest.mark.parametrize("link", ["", "https://site.example/"])
def test_16_titles_tell_entries_with_one_enclosure_apart(link: str) -> None:
    def playlist(*numbers: int) -> bytes:
        file = '<enclosure url="https://site.example/live.mp3" type="audio/mpeg"/>'
        return site_rss(
            *(post(each, guid="", link=link, more=file) for each in numbers)
        )

    reader = reader_of(playlist(1))

    assert reader.read(playlist(2, 1)).new == ("Post 2",)
    assert reader.read(playlist(3, 2, 1)).new == ("Post 3",)
    assert reader.read(playlist(2)).is_silent


@pytest.mark.parametrize("date", [None, ""], ids=["dated", "undated"])
def test_16_an_id_that_comes_to_be_shared_makes_no_old_entry_new(
    date: str | None,
) -> None:
    more = {} if date is None else {"date": date}
    reader = reader_of(shared(1, **more))

    assert reader.read(shared(2, 1, **more)).new == ("Post 2",)
    assert reader.read(shared(3, 2, 1, **more)).new == ("Post 3",)
    assert reader.read(shared(3, **more)).is_silent
    assert reader.read(shared(4, 3, **more)).new == ("Post 4",)


def test_16_the_entry_that_had_the_id_for_itself_is_known_though_it_was_edited() -> (
    None
):
    reader = reader_of(shared(1))
    edited = post(1, guid="g", text="Edited", title="Post one")

    assert reader.read(site_rss(post(2, guid="g"), edited, post(98), post(99))).new == (
        "Post 2",
    )


def test_16_the_entry_whose_link_is_the_shared_id_keeps_it() -> None:
    guid = "https://site.example/1"
    reader = reader_of(site_rss(post(1, guid=guid), post(8), post(9)))
    both = site_rss(post(2, guid=guid), post(1, guid=guid), post(8), post(9))

    assert reader.read(both).new == ("Post 2",)


def as_former_version(reader: Newsreader, *documents: bytes) -> Newsreader:
    """It has read these before the program was replaced by this one."""
    for document in documents:
        reader.read(document)
    seen = reader.target.seen
    reader.target = replace(reader.target, seen=seen[:1] + b"\x02" + seen[2:])
    return reader


def test_16_what_a_former_version_took_for_one_entry_is_not_told_all_at_once() -> None:
    """Of entries with one id it knew the first one."""
    reader = as_former_version(Newsreader(), shared(5))

    upgraded = reader.read(shared(5, 4, 3, 2, 1))

    assert upgraded.is_silent
    assert {each.title for each in upgraded.entries} >= {"Post 4", "Post 1"}
    assert reader.read(shared(6, 5, 4, 3, 2, 1)).new == ("Post 6",)


def test_16_but_what_came_since_it_last_read_is() -> None:
    reader = as_former_version(Newsreader(), shared(5))
    since = post(6, guid="g", date=reader.at + timedelta(minutes=5))

    upgraded = reader.read(
        site_rss(since, post(5, guid="g"), post(4, guid="g"), post(98), post(99))
    )

    assert upgraded.new == ("Post 6",)


def test_16_what_of_it_has_vanished_or_was_edited_changes_nothing() -> None:
    reader = as_former_version(Newsreader(), shared(9))

    assert reader.read(shared(5, 4, 3, 2, 1)).is_silent


def test_16_a_database_of_the_former_version_tells_no_known_entry_again() -> None:
    """Nor an update, though entries may say more than they did."""
    for document in golden_documents():
        reader = as_former_version(Newsreader(), document.read_bytes())

        reading = reader.read(document.read_bytes() + b"\n")

        assert (reading.new, reading.updated) == ((), ()), document.name


def test_16_what_it_read_without_what_was_escaped_is_not_told_again() -> None:
    """Of documents that could only be recovered it left out ``&amp;`` in texts."""

    def document(query: str, title: str) -> bytes:
        links = (f"https://site.example/?a={n}{query}b=1" for n in range(4))
        items = (
            f"<item><title>{title}</title><link>{link}</link></item>" for link in links
        )
        return site_rss("<b>x</i>", *items)

    reader = as_former_version(Newsreader(), document("", "Q A"))

    assert reader.read(document("&amp;", "Q &amp; A")).is_silent
    assert reader.read(document("&amp;c=1&amp;", "Q &amp; A")).new != ()


LINK = "<link>https://site.example/1</link>"


@pytest.mark.parametrize(
    "found",
    [LINK, '<enclosure url="https://site.example/1.mp3" type="audio/mpeg"/>'],
    ids=["a link", "a file"],
)
@pytest.mark.parametrize("date", ["", "<updated>2026-01-01T00:00:00Z</updated>"])
def test_16_what_a_former_version_knew_by_its_words_is_known_by_what_is_read_of_it_now(
    found: str, date: str
) -> None:
    def document(more: str) -> bytes:
        nameless = f"<entry><title>One</title>{date}{more}</entry>"
        return site_atom(nameless, entry("2"), entry("3"), entry("4"))

    reader = as_former_version(Newsreader(), document(""))

    assert reader.read(document(found)).is_silent
    assert reader.read(document(f"{found}<rights>R</rights>")).new == ()


def test_16_what_it_knew_and_is_still_there_is_nobody_else() -> None:
    nameless = "<entry><title>One</title></entry>"
    reader = as_former_version(
        Newsreader(), site_atom(nameless, entry("2"), entry("3"))
    )
    other = f"<entry><title>One</title>{LINK}</entry>"

    assert reader.read(site_atom(other, nameless, entry("2"), entry("3"))).new == (
        "One",
    )


def test_17_entries_with_the_same_link_and_different_ids_are_both_news() -> None:
    link = "https://site.example/same"

    reading = reader_of(posts(1)).read(
        site_rss(post(3, link=link), post(2, link=link), post(1))
    )

    assert reading.new == ("Post 3", "Post 2")


@pytest.mark.parametrize(
    ("left", "source"),
    [
        ({"title": "", "text": "", "date": ""}, IdSource.LINK),
        ({"link": "", "text": "", "date": ""}, IdSource.CONTENT),
        ({"link": "", "title": "", "date": ""}, IdSource.CONTENT),
        ({}, IdSource.LINK),
    ],
    ids=["only a link", "only a title", "only a description", "no guid"],
)
def test_18_an_entry_without_an_id_is_known_by_what_it_has(
    left: dict[str, str], source: IdSource
) -> None:
    def nameless(*numbers: int) -> bytes:
        return site_rss(*(post(number, guid="", **left) for number in numbers))

    reader = reader_of(nameless(2, 1))
    reading = reader.read(nameless(3, 2, 1))

    assert len(reading.new) == 1
    assert reading.sources == [source]
    assert reading.polling.generated_ids
    assert reader.read(nameless(1, 3)).is_silent


def test_18_a_link_that_comes_to_be_shared_makes_no_old_entry_new() -> None:
    def shared(*numbers: int) -> bytes:
        link = "https://site.example/daily"
        return site_rss(*(post(number, guid="", link=link) for number in numbers))

    reader = reader_of(shared(1))

    assert reader.read(shared(2, 1)).new == ("Post 2",)
    assert reader.read(shared(2)).is_silent
    assert reader.read(shared(3, 2)).new == ("Post 3",)


def test_18_an_edit_of_an_entry_that_is_known_by_its_words_is_no_news() -> None:
    nameless = {"guid": "", "link": ""}
    reader = reader_of(site_rss(post(1, **nameless), post(2, **nameless)))

    edited = post(1, text="Text of one", **nameless)

    assert reader.read(site_rss(edited, post(2, **nameless))).new == ()


def test_18_but_the_same_words_on_another_day_are() -> None:
    nameless = {"guid": "", "link": "", "title": "Backup", "text": "It went well"}
    reader = reader_of(site_rss(post(1, date=NOON, **nameless)))

    later = reader.read(site_rss(post(2, date=NOON + DAY, **nameless)))

    assert later.new == ("Backup",)


BARE = {"guid": "", "link": "", "date": ""}


def test_18_an_edit_of_all_entries_that_have_but_titles_is_no_news() -> None:
    reader = reader_of(site_rss(*(post(number, **BARE) for number in (1, 2, 3))))

    edited = [post(n, text=f"Text of {n}", **BARE) for n in (1, 2, 3)]

    assert reader.read(site_rss(*edited)).new == ()
    assert reader.read(site_rss(post(4, **BARE), *edited)).new == ("Post 4",)


def test_18_but_one_text_under_a_title_without_a_date_is() -> None:
    reader = reader_of(site_rss(post(1, **BARE), post(2, **BARE), post(3, **BARE)))

    later = reader.read(
        site_rss(post(1, text="Again", **BARE), post(2, **BARE), post(3, **BARE))
    )

    assert later.new == ("Post 1",)


def test_18_and_so_are_words_without_a_title() -> None:
    untitled = {**BARE, "title": ""}
    reader = reader_of(site_rss(*(post(number, **untitled) for number in (1, 2))))

    edited = (post(number, text=f"Text {number}", **untitled) for number in (1, 2))

    assert len(reader.read(site_rss(*edited)).new) == 2


def test_19_an_id_need_not_be_an_address() -> None:
    guid = '<guid isPermaLink="false">https://site.example/1</guid>'
    reading = reader_of(posts(2)).read(site_rss(post(1, guid="", link="", more=guid)))

    assert [each.links for each in reading.entries] == [()]
    assert reading.sources == [IdSource.FEED]


@pytest.mark.parametrize(
    "written",
    [
        "<guid>\n  a&amp;b\t</guid>",
        "<guid><![CDATA[a&b]]></guid>",
        "<guid><![CDATA[\n a&b ]]></guid>",
        "<guid>a&#38;b</guid>",
        "<guid>&#97;&amp;b</guid>",
    ],
)
def test_19_an_id_is_the_same_however_it_is_written(written: str) -> None:
    reader = reader_of(site_rss(post(1, guid="a&b")))

    assert reader.read(site_rss(post(1, guid="", more=written))).is_silent


def test_19_ids_that_differ_in_case_are_different() -> None:
    reader = reader_of(site_rss(post(1, guid="abc")))

    reading = reader.read(site_rss(post(2, guid="ABC"), post(1, guid="abc")))

    assert reading.new == ("Post 2",)


async def test_19_an_id_is_known_in_its_own_feed_only(hub: PolledHub) -> None:
    other = "https://other.exempt/feed"
    hub.sites.pages |= {SITE: posts(1), other: posts(2)}
    feeds = [await hub.add(SITE), await hub.add(other)]

    hub.sites.pages |= {SITE: posts(2, 1), other: posts(1, 2)}
    for feed in feeds:
        await hub.fetch(feed)

    assert [await hub.told(feed) for feed in feeds] == [["Post 2"], ["Post 1"]]


# --- 20: ids that change with each fetch ---------------------------------------


def session(number: int, fetch: int, **more: str) -> str:
    return post(number, guid=f"https://site.example/{number}?sid={fetch}", **more)


def test_20_ids_that_change_with_each_fetch_are_seen_through() -> None:
    reader = reader_of(site_rss(*(session(n, 0) for n in range(10))))

    for fetch in range(1, 6):
        reading = reader.read(site_rss(*(session(n, fetch) for n in range(10))))
        assert reading.is_silent
    assert reading.polling.bozo_rank > 0.9
    assert len(SeenSet.unpack(reader.target.seen)) == 10


def test_20_what_is_new_among_them_is_news() -> None:
    reader = reader_of(site_rss(*(session(n, 0, date="") for n in range(10))))

    for fetch in range(1, 6):
        shown = range(fetch, fetch + 10)
        reading = reader.read(site_rss(*(session(n, fetch, date="") for n in shown)))
        assert reading.new == (f"Post {fetch + 9}",)


def test_20_a_single_entry_of_that_kind_is_known_by_its_date() -> None:
    reader = reader_of(site_rss(session(1, 0)))

    assert reader.read(site_rss(session(1, 1))).is_silent
    assert reader.read(site_rss(session(1, 2, date=format_datetime(NOON)))).new


# --- 21: dates -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("", None),
        ("soon", None),
        ("0000-00-00T00:00:00Z", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", datetime(1970, 1, 1, tzinfo=UTC)),
        ("Sat, 11 Jan 20 10:00:00 GMT", datetime(2020, 1, 11, 10, tzinfo=UTC)),
        ("2020-01-11", datetime(2020, 1, 11, tzinfo=UTC)),
        ("Sat, 11 Jan 2020 10:00:00 XYZT", datetime(2020, 1, 11, 10, tzinfo=UTC)),
        ("Sa, 11 Mär 2020 10:00:00 +0100", datetime(2020, 3, 11, 9, tzinfo=UTC)),
        ("11 janvier 2020", datetime(2020, 1, 11, tzinfo=UTC)),
        ("Sat, 11 Jan 2020 10:00 GMT", datetime(2020, 1, 11, 10, tzinfo=UTC)),
        ("Sat, 11 Jan 2020 24:00:00 GMT", datetime(2020, 1, 12, tzinfo=UTC)),
        ("2020-01-11T10:00:00+0200", datetime(2020, 1, 11, 8, tzinfo=UTC)),
        ("2020-1-11", datetime(2020, 1, 11, tzinfo=UTC)),
    ],
)
def test_21_a_date_is_read_or_missing_and_holds_nothing_up(
    written: str, date: datetime | None
) -> None:
    reading = reader_of(posts(1)).read(site_rss(post(2, date=written), post(1)))

    assert reading.new == ("Post 2",)
    assert [each.published for each in reading.entries] == [date]


async def test_21_an_entry_of_the_future_comes_at_once_and_is_not_the_latest_for_years(
    hub: PolledHub,
) -> None:
    ahead = post(2, date=hub.clock.now() + 400 * DAY)
    hub.sites.pages[SITE] = posts(1)
    feed = await hub.add(SITE)
    hub.sites.pages[SITE] = site_rss(ahead, post(1))
    await hub.fetch(feed)
    hub.clock.advance(DAY.total_seconds())
    hub.sites.pages[SITE] = site_rss(ahead, post(3, date=hub.clock.now()), post(1))
    await hub.fetch(feed)

    assert await hub.told(feed) == ["Post 2", "Post 3"]
    [latest] = await hub.storage.log.latest_entries(feed, 1)
    assert latest.key == "tag:site.example,2026:3"


def test_21_an_update_dated_before_its_publication_is_an_update() -> None:
    before = {"published": NOON, "updated": NOON - DAY}
    reader = reader_of(site_atom(entry("a", **before), entry("b")))

    reading = reader.read(site_atom(entry("a", text="edited", **before), entry("b")))

    assert (reading.updated, reading.fresh) == (("Entry a",), ())


# --- 22, 23: more than a document usually has ----------------------------------


async def test_22_a_thousand_new_entries_come_in_parts_and_none_is_lost(
    hub: PolledHub,
) -> None:
    hub.sites.pages[SITE] = posts(0)
    feed = await hub.add(SITE)

    hub.sites.pages[SITE] = posts(*range(1_200, 0, -1), 0)
    await hub.fetch(feed)

    told = await hub.told(feed)
    assert told == [f"Post {number}" for number in range(1_200, 0, -1)]
    sizes = [len(record.entries) for record in await hub.records(feed)]
    assert sizes == [500, 500, 200]


def test_23_when_no_entry_is_known_all_are_told_and_the_gap_is_marked() -> None:
    reader = reader_of(posts(3, 2, 1))

    reading = reader.read(posts(9, 8, 7))

    assert reading.new == ("Post 9", "Post 8", "Post 7")
    assert reading.polling.gap_at == reader.at
    assert reading.polling.message.endswith("3/3 entries; no entry was known (gap)")


def test_23_so_it_is_where_all_entries_say_the_same() -> None:
    def alike(*numbers: int) -> bytes:
        same = {"title": "Full", "date": "2026-01-01", "text": "It is full"}
        link = "https://site.example/"
        return site_rss(*(post(number, link=link, **same) for number in numbers))

    reader = reader_of(alike(1, 2, 3))

    assert len(reader.read(alike(4, 5, 6)).new) == 3


def test_23_the_mark_stays_and_one_known_entry_is_no_gap() -> None:
    reader = reader_of(posts(3, 2, 1))

    assert reader.read(posts(5, 4, 3)).polling.gap_at is None
    marked = reader.read(posts(9, 8, 7)).polling.gap_at
    assert reader.read(posts(10, 9, 8)).polling.gap_at == marked


def test_23_news_that_a_publisher_brought_alone_are_no_gap() -> None:
    reader = reader_of(posts(3, 2, 1))

    reading = reader.read(posts(5, 4), is_partial=True)

    assert reading.new == ("Post 5", "Post 4")
    assert reading.polling.gap_at is None
    assert reader.read(posts(6, 5, 4, 3, 2, 1)).new == ("Post 6",)


# --- 24 to 26: fetches that cross ----------------------------------------------


async def test_24_a_push_and_a_poll_of_the_same_entry_are_one_notification(
    hub: PolledHub,
) -> None:
    hub.sites.pages[SITE] = posts(1)
    feed = await hub.add(SITE, is_polled=True)
    builds = iter(range(100))  # other bytes each time
    hub.sites.pages[SITE] = lambda: site_rss(
        post(2), post(1), head=f"<ttl>{next(builds)}</ttl>"
    )
    hub.clock.advance(7 * DAY.total_seconds())
    asked = len(hub.sites.asked)
    hub.sites.gate.clear()

    hub.poller.wake()  # the poll
    await eventually(lambda: len(hub.sites.asked) == asked + 1)
    found = await hub.storage.feeds.get(feed)
    assert found is not None
    assert hub.poller.ping(found)  # and the push, meanwhile
    hub.sites.gate.set()
    await eventually(
        lambda: len(hub.sites.asked) == asked + 2 and not hub.poller.pinged
    )

    assert await hub.kinds(feed) == ["entries"]
    assert await hub.told(feed) == ["Post 2"]


async def test_25_a_feed_that_is_redirected_to_another_known_one_repeats_nothing(
    hub: PolledHub,
) -> None:
    other = "https://other.exempt/feed"
    theirs = [post(number, guid=f"other-{number}") for number in (21, 22)]
    hub.sites.pages |= {SITE: posts(1), other: site_rss(*theirs)}
    mine, their = await hub.add(SITE), await hub.add(other)

    hub.sites.pages[SITE] = other
    await hub.fetch(mine)
    await hub.fetch(their)
    assert (await hub.told(mine), await hub.told(their)) == ([], [])

    hub.sites.pages[other] = site_rss(post(30), *theirs)
    await hub.fetch(their)
    await hub.fetch(mine)
    assert (await hub.told(mine), await hub.told(their)) == (["Post 30"], ["Post 30"])


async def test_25_what_came_to_both_at_once_is_told_to_both(hub: PolledHub) -> None:
    other = "https://other.exempt/feed"
    hub.sites.pages |= {SITE: posts(1), other: posts(21)}
    mine, their = await hub.add(SITE), await hub.add(other)

    fresh = post(30, date=hub.clock.now() + timedelta(minutes=30))
    hub.sites.pages |= {SITE: other, other: site_rss(fresh, post(21), post(1))}
    await hub.fetch(their)
    await hub.fetch(mine)

    assert await hub.told(mine) == ["Post 30"]
    assert await hub.told(their) == ["Post 30", "Post 1"]


async def test_25_a_redirect_to_a_feed_nobody_knows_is_read_as_its_own(
    hub: PolledHub,
) -> None:
    other = "https://other.exempt/feed"
    hub.sites.pages |= {SITE: posts(1), other: posts(2, 1)}
    feed = await hub.add(SITE)

    hub.sites.pages[SITE] = other
    await hub.fetch(feed)

    assert await hub.told(feed) == ["Post 2"]


async def test_26_versions_that_alternate_repeat_nothing(hub: PolledHub) -> None:
    behind, ahead = posts(2, 1), posts(3, 2, 1)
    hub.sites.pages[SITE] = behind
    feed = await hub.add(SITE)

    for document in (ahead, behind, ahead, behind, ahead):
        hub.sites.pages[SITE] = document
        await hub.fetch(feed)

    assert await hub.kinds(feed) == ["entries"]
    assert await hub.told(feed) == ["Post 3"]


async def test_26_nor_do_their_contents_flood_those_who_ask_for_updates(
    hub: PolledHub,
) -> None:
    versions = [posts(1, text="one"), posts(1, text="two")]
    hub.sites.pages[SITE] = versions[0]
    feed = await hub.add(SITE)

    for fetch in range(1, 10):
        hub.sites.pages[SITE] = versions[fetch % 2]
        await hub.fetch(feed)

    assert await hub.kinds(feed) == ["updated"] * UPDATES_A_DAY


# --- 27 to 29: the same id, written and placed otherwise -----------------------


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("tag:site.example,2026:1", "  tag:site.example,2026:1\n"),
        ("a b", "a\n    b"),
        ("caf\u00e9", "cafe\u0301"),
        ("http://site.example/1", "https://SITE.example/1"),
    ],
    ids=["around it", "inside", "composed", "scheme and host"],
)
def test_27_ids_are_compared_in_their_normal_form(one: str, two: str) -> None:
    reader = reader_of(site_rss(post(1, guid=one), post(2)))

    assert reader.read(site_rss(post(1, guid=two), post(2))).is_silent


def test_27_a_relative_id_is_resolved_against_its_base() -> None:
    based = 'xml:base="https://site.example/blog/"'
    link = "https://site.example/blog/1"
    reader = reader_of(site_atom(entry("https://site.example/blog/1", link=link)))

    relative = entry("1", link=link, title="Entry https://site.example/blog/1")

    assert reader.read(site_atom(relative, root=based)).is_silent


def test_28_an_entry_of_a_planet_is_known_by_its_own_id_not_its_sources() -> None:
    def of(source: str, id: str) -> str:
        return entry(id, more=f"<source><id>tag:{source}</id><title>A</title></source>")

    reader = reader_of(site_atom(of("one", "tag:1"), of("two", "tag:2")))

    reading = reader.read(site_atom(of("one", "tag:3"), of("one", "tag:1")))

    assert reading.new == ("Entry tag:3",)
    assert [each.id for each in reading.entries] == ["tag:3"]


def test_28_ids_that_are_unique_in_their_source_only_are_told_apart() -> None:
    def of(source: str, id: str, title: str) -> str:
        inner = f"<source><id>tag:{source}</id><title>A</title></source>"
        return entry(id, title=title, link=f"https://{source}/{id}", more=inner)

    reader = reader_of(site_atom(of("one", "1", "First of one")))

    reading = reader.read(
        site_atom(of("two", "1", "Of two"), of("one", "1", "First of one"))
    )

    assert reading.new == ("Of two",)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_29_another_format_at_the_same_url_is_matched_by_links(count: int) -> None:
    reader = reader_of(posts(*range(count)))
    entries = [
        entry(f"tag:{number}", link=f"http://site.example/{number}")
        for number in range(count)
    ]

    assert reader.read(site_atom(*entries)).is_silent
    assert reader.read(site_atom(entry("tag:new"), *entries)).new == ("Entry tag:new",)


# --- 30: a crash in between ----------------------------------------------------


async def test_30_a_crash_before_the_commit_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    database, clock = tmp_path / "hub.db", ManualClock()
    async with polled_hub(database, clock) as hub:
        hub.sites.pages[SITE] = posts(1)
        feed = await hub.add(SITE, is_polled=True)
        hub.sites.pages[SITE] = posts(2, 1)
        clock.advance(7 * DAY.total_seconds())
        asked = len(hub.sites.asked)
        hub.sites.gate.clear()
        hub.poller.wake()
        await eventually(lambda: len(hub.sites.asked) == asked + 1)
    async with polled_hub(database, clock) as hub:
        hub.sites.pages[SITE] = posts(2, 1)
        await hub.fetch(feed)
        assert await hub.told(feed) == ["Post 2"]


async def test_30_a_crash_after_the_commit_leaves_the_delivery_to_be_made_once(
    tmp_path: Path,
) -> None:
    database, clock = tmp_path / "hub.db", ManualClock()
    async with polled_hub(database, clock) as hub:
        hub.sites.pages[SITE] = posts(1)
        feed = await hub.add(SITE)
        callback = "https://you.example/callback"
        new = NewSubscription(
            account=OPERATOR, topic=SITE, feed_id=feed, callback=callback
        )
        await hub.storage.subscriptions.add(new, clock.now())
        hub.sites.pages[SITE] = posts(2, 1)
        await hub.fetch(feed)
    async with polled_hub(database, clock) as hub:
        hub.sites.pages[SITE] = posts(2, 1) + b"<!-- the same -->"
        await hub.fetch(feed)
        chunks = await hub.storage.deliveries.claim_chunks(
            ClaimTerms(lease_id=1, seconds=3_600, now=clock.now(), limit=10)
        )
        assert [chunk.record.kind for chunk in chunks] == [RecordKind.ENTRIES]
        assert [len(chunk.pending) for chunk in chunks] == [1]


# --- what the status says of all this ------------------------------------------


def notification_of(reading: Reading) -> Notification:
    record = reading.commit.records[-1]
    return Notification(
        topic=SITE,
        hub="https://hub.example/hub",
        status=record.status,
        feed=Feed(title="Site"),
        entries=tuple(reading.entries),
    )


@pytest.mark.parametrize(
    ("document", "http", "bozo_rank", "generated"),
    [
        (posts(9, 2, 1), "1/3 entries", 0.0, False),
        (posts(9, 8, 7), "3/3 entries; no entry was known (gap)", 0.0, False),
        (site_rss(post(9), post(9), post(1)), "1/2 entries; 1 left out", 0.167, False),
        (site_rss(post(9, guid=""), post(1)), "1/2 entries", 0.05, True),
        (site_rss(post(9, date="soon"), post(1)), "1/2 entries", 0.05, False),
        (
            site_rss(moved(1), moved(2), post(9)),
            "1/3 entries; 2 known under new ids",
            0.333,
            False,
        ),
    ],
    ids=["nothing", "a gap", "left out", "made-up ids", "no dates", "re-keyed"],
)
def test_a_notification_says_what_is_odd_in_both_formats(
    document: bytes, http: str, bozo_rank: float, generated: bool
) -> None:
    notification = notification_of(reader_of(posts(2, 1)).read(document))

    status = orjson.loads(render_json(notification))["status"]
    assert status["http"].endswith(http)
    assert status["bozoRank"] == bozo_rank
    assert status.get("generatedIds", False) is generated

    root = etree.fromstring(render_atom(notification))
    found = {each.tag.partition("}")[2]: each.text for each in root[0]}
    assert (found["http"] or "").endswith(http)
    assert found["bozo_rank"] == str(bozo_rank)
    assert found.get("generated_ids") == ("true" if generated else None)


def test_the_rank_falls_when_a_fault_is_mended_not_when_nothing_is_said() -> None:
    reader = reader_of(posts(1, date="", guid="", link=""))
    ranks = [reader.readings[0].polling.bozo_rank]

    for number in range(2, 5):
        ranks.append(reader.read(posts(number, 1)).polling.bozo_rank)
    ranks.append(reader.read(site_rss()).polling.bozo_rank)

    assert ranks == [0.5, 0.25, 0.125, 0.062, 0.062]


def test_the_status_keeps_the_first_few_problems() -> None:
    twins = [post(1, title=f"Twin {number}") for number in range(9)]

    polling = reader_of(site_rss(*twins)).readings[0].polling

    assert polling.dropped == 8
    assert len(polling.problems) == 5
