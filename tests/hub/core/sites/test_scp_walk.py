"""What a walk over an SCP site asks for, and what it believes."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from msgspec.structs import replace

from hub.core.sites.scp_session import (
    LAST_RETRY,
    ScpState,
    capped_times,
    pack_state,
    read_state,
)
from hub.core.sites.site_bounds import SiteBounds
from hub.core.sites.walk_steps import CollectionPages, ReadCollection
from tests.support.scp_site import SITEMAP
from tests.support.scp_walks import Walks

NEWS = """<rss version="2.0"><channel><title>News</title><description>d</description>
<item><title>Fed</title><link>https://site.example/fed</link>
<pubDate>Fri, 02 Jan 2026 10:00:00 GMT</pubDate></item>
<item><title>Without a page</title><guid>x</guid></item></channel></rss>"""
PAGE = '<html><head><link rel="alternate" type="application/rss+xml" href="/n"></head>'


@pytest.fixture
def walks() -> Walks:
    walks = Walks()
    for number in range(10):
        walks.scp.put(str(number), f"Page {number}")
    walks.scp.snapshot()
    return walks


def with_feed(walks: Walks) -> None:
    walks.site.put("/", PAGE)
    walks.site.put("/n", NEWS)


def test_the_first_reading_is_news_to_nobody(walks: Walks) -> None:
    assert walks.well() == []
    assert walks.is_read
    assert walks.title == "site.test"
    assert len(walks.known) == 10
    assert walks.asked == [SITEMAP, "/scp/all-1.scp.gz"]


def test_what_is_the_same_costs_one_request(walks: Walks) -> None:
    walks.well()
    state = walks.state
    assert walks.well() == []
    assert walks.asked == [SITEMAP]
    assert walks.state == state


def test_only_what_is_newer_replaces(walks: Walks) -> None:
    walks.well()
    older = walks.scp.pages["all"]["https://site.example/1"]
    new = walks.scp.put("new", "New")
    edited = walks.scp.put("0", "Edited")
    walks.scp.delta(new, edited, older | {"title": "Not newer"})
    assert walks.well() == ["Edited", "New"]
    assert walks.asked == [SITEMAP, "/scp/all-2.scp.gz"]


def test_of_a_page_that_is_there_twice_the_newest_counts(walks: Walks) -> None:
    walks.well()
    first = walks.scp.put("new", "First")
    second = walks.scp.put("new", "Second")
    walks.scp.delta(second, first)
    assert walks.well() == ["Second"]


def test_what_no_file_of_a_full_reading_has_is_gone(walks: Walks) -> None:
    walks.well()
    walks.scp.delta(walks.scp.put("new", "New"))
    walks.scp.remove("3")
    assert walks.well() == ["New"]
    walks.scp.snapshot()
    walks.scp.delta(walks.scp.put("after", "After"))
    walks.scp.named.pop(1)  # so the chain is broken, and the snapshot mends it
    assert walks.well() == ["After", "https://site.example/3"]


def test_what_is_gone_is_looked_for_once_from_end_to_end() -> None:
    walks = Walks()
    for number in range(700):
        walks.scp.put(f"{number:03}", f"Page {number}")
    walks.scp.snapshot()
    walks.well()
    for number in range(250):
        walks.scp.remove(f"{number:03}")
    walks.scp.snapshot()
    walks.scp.named.pop(0)
    walks.later = timedelta(days=1)
    assert len(walks.well()) == 250
    pages = [after[-3:] for after in walks.swept]
    assert pages == ["", "199", "249"]


def test_a_page_that_returns_is_an_update(walks: Walks) -> None:
    walks.well()
    gone = walks.scp.pages["all"]["https://site.example/3"]
    walks.scp.remove("3")
    walks.scp.forget()
    walks.scp.snapshot()
    assert walks.well() == ["https://site.example/3"]
    walks.scp.delta(gone)
    assert walks.well() == ["Page 3"]


def test_snapshots_are_read_now_and_then_though_deltas_lead_on(walks: Walks) -> None:
    walks.well()
    begun = walks.scp.at
    walks.scp.remove("3")
    walks.scp.snapshot()
    walks.scp.delta(walks.scp.put("new", "New"), since=begun)
    assert walks.well() == ["New"]
    walks.scp.delta(walks.scp.put("more", "More"))
    assert walks.well() == ["More"]
    walks.scp.delta(walks.scp.put("most", "Most"))
    walks.later = timedelta(hours=7)
    assert walks.well() == ["Most", "https://site.example/3"]
    walks.scp.delta(walks.scp.put("last", "Last"))
    walks.later = timedelta(hours=14)
    assert walks.well() == ["Last"]
    assert len(walks.asked) == 2  # there is no newer snapshot


def test_a_reading_that_is_exhausted_goes_on_from_its_last_step(walks: Walks) -> None:
    walks.saves = 3  # the plan, and six pages
    assert walks.visit() is None
    assert len(walks.known) == 6
    walks.saves = 1_000
    assert walks.well() == []
    assert walks.asked == [SITEMAP, "/scp/all-1.scp.gz"]
    assert len(walks.known) == 10
    assert walks.is_read


def test_a_new_sitemap_in_the_middle_of_a_file_leaves_what_was_read(
    walks: Walks,
) -> None:
    walks.saves = 3
    assert walks.visit() is None
    walks.saves = 1_000
    walks.scp.delta(walks.scp.put("new", "New"))
    assert walks.well() == []
    assert len(walks.known) == 11


@pytest.mark.parametrize("steps", range(1, 12))
def test_wherever_a_full_reading_is_cut_off_it_comes_to_the_same(
    walks: Walks, steps: int
) -> None:
    walks.well()
    walks.scp.remove("3")
    walks.scp.put("1", "Edited")
    walks.scp.forget()
    walks.scp.snapshot()
    walks.saves = steps
    cut = walks.visit()
    walks.saves = 1_000
    walks.well()
    assert sorted(walks.told) == ["Edited", "https://site.example/3"]
    assert cut is None or steps > 6


def test_requests_that_may_not_be_made_end_the_visit(walks: Walks) -> None:
    walks.asks = 0
    assert walks.visit() is None
    walks.asks = 1
    assert walks.well() == []


def test_pages_that_are_not_read_in_time_are_for_the_next_visit(walks: Walks) -> None:
    walks.instead[ReadCollection] = False
    assert walks.visit() is None
    walks.instead.clear()
    walks.seen = b""
    walks.well()
    assert walks.is_read
    assert len(walks.known) == 10


def test_a_file_that_cannot_be_read_here_is_not_used(walks: Walks) -> None:
    with_feed(walks)
    walks.instead[ReadCollection] = CollectionPages(
        pages=(), line=0, error="cannot be kept: full"
    )
    ended = walks.visit()
    assert ended is not None
    assert "all-1.scp.gz: cannot be kept: full" in ended.problems[0]
    assert [page.reference for page in walks.known.values()] == [
        "https://site.example/fed"
    ]


def test_of_several_sections_all_are_read_before_anything_is_gone() -> None:
    walks = Walks()
    for section in ("blog", "docs"):
        walks.scp.put("both", "Both", section=section)
        for number in range(4):
            walks.scp.put(f"{section}{number}", f"{section} {number}", section=section)
        walks.scp.snapshot(section)
    assert walks.well() == []
    assert len(walks.known) == 9
    walks.scp.remove("both", section="blog")
    walks.scp.remove("blog1", section="blog")
    walks.scp.snapshot("blog")
    assert walks.well() == []  # the docs may have it
    walks.scp.snapshot("blog")
    walks.later = timedelta(hours=7)
    assert walks.well(walk_every=3_600.0) == ["https://site.example/blog1"]


def test_a_snapshot_that_lacks_most_is_not_believed_at_once(walks: Walks) -> None:
    walks.well()
    for number in range(8):
        walks.scp.remove(str(number))
    walks.scp.forget()
    walks.scp.snapshot()
    ended = walks.visit()
    assert ended is not None
    assert "8 of 10 pages are missing in the snapshot" in ended.problems[0]
    assert walks.told == []
    walks.scp.forget()
    walks.scp.snapshot()
    assert len(walks.well()) == 8


def test_a_snapshot_that_is_the_same_by_its_etag_is_not_read_again(
    walks: Walks,
) -> None:
    walks.well()
    path = walks.scp.snapshot()
    walks.scp.named = [
        each.replace(path, "/scp/all-1.scp.gz") for each in walks.scp.named[1:]
    ]
    walks.scp.publish()
    assert walks.well() == []
    assert walks.asked == [SITEMAP, "/scp/all-1.scp.gz"]
    walks.scp.delta(walks.scp.put("new", "New"))
    assert walks.well() == ["New"]
    assert read_state(walks.state).sections["all"].etag == '"/scp/all-1.scp.gz"'


@pytest.mark.parametrize(
    ("lies", "problem"),
    [
        ({"head_section": "blog"}, "is of the section blog"),
        ({"type": "snapshot"}, "is a snapshot"),
        ({"generated": "2020-01-01T00:00:00Z"}, "is older than the sitemap says"),
        ({"checksum": "sha256:" + "0" * 64}, "the file has another checksum"),
        ({"version": "7.0"}, "version 7.0 of SCP is not supported"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_not_used(
    walks: Walks, lies: dict[str, str], problem: str
) -> None:
    walks.well()
    with_feed(walks)
    walks.scp.delta(walks.scp.put("spoiled", "Spoiled"), **lies)
    ended = walks.visit()
    assert ended is not None
    assert walks.told == ["Fed"]
    assert any(problem in each for each in ended.problems)
    assert any("is read instead: http://site.test/n" in each for each in ended.problems)
    # It is tried again in an hour; until then the feed alone is read.
    assert walks.visit() is not None
    assert walks.asked == [SITEMAP, "/n"]
    walks.later = timedelta(hours=2)
    assert walks.visit() is not None
    assert walks.asked == [SITEMAP, "/scp/all-2.scp.gz", "/n"]
    walks.scp.forget()
    walks.scp.snapshot()
    assert "Spoiled" in walks.well()


def test_a_delta_that_begins_later_than_it_should_leaves_a_gap(walks: Walks) -> None:
    walks.well()
    walks.scp.remove("3")
    after = walks.scp.at + timedelta(seconds=30)
    walks.scp.delta(walks.scp.put("new", "New"), since=after)
    assert walks.well() == ["New"]
    assert read_state(walks.state).sections["all"].is_broken
    walks.scp.snapshot()
    walks.scp.delta(since=walks.scp.at)
    assert walks.well() == ["https://site.example/3"]


def test_a_delta_whose_file_begins_later_than_named_leaves_a_gap(walks: Walks) -> None:
    walks.well()
    late = (
        "2026-01-01T00:00:00Z" if walks.scp.at.year < 2026 else "2099-01-01T00:00:00Z"
    )
    walks.scp.delta(walks.scp.put("new", "New"), head_since=late)
    assert walks.well() == ["New"]
    assert read_state(walks.state).sections["all"].is_broken


def test_a_site_of_deltas_alone_is_read_as_far_as_it_goes() -> None:
    walks = Walks()
    walks.scp.reached["all"] = walks.scp.at
    walks.scp.delta(walks.scp.put("a", "A"), head_since="2099-01-01T00:00:00Z")
    assert walks.well() == []
    walks.scp.delta(walks.scp.put("b", "B"))
    assert walks.well() == ["B"]


def test_a_snapshot_with_other_pages_than_named_deletes_nothing(walks: Walks) -> None:
    walks.well()
    walks.scp.remove("3")
    walks.scp.forget()
    walks.scp.snapshot(named_pages=10)
    ended = walks.visit()
    assert ended is not None
    assert (
        "has 9 pages, not 10; missing pages do not count as deleted"
        in (ended.problems[0])
    )
    assert walks.told == []


def test_a_snapshot_with_a_page_that_is_too_long_to_read_deletes_nothing(
    walks: Walks,
) -> None:
    walks.well()
    walks.scp.remove("3")
    walks.scp.put("4", Random(1).randbytes(600_000).hex())
    walks.scp.forget()
    walks.scp.snapshot()
    assert walks.well() == []


def test_what_is_wanted_and_has_expired_is_told(walks: Walks) -> None:
    walks.well()
    walks.scp.delta(walks.scp.put("a", "A"), expires=walks.scp.at)
    ended = walks.visit()
    assert ended is not None
    assert ended.problems == ("section all: what is needed next has expired",)


def test_no_more_problems_are_told_than_anybody_reads(walks: Walks) -> None:
    walks.scp.named += ["<scp:collection/>"] * 30
    walks.scp.publish()
    ended = walks.visit()
    assert ended is not None
    assert len(ended.problems) == 20


def test_over_https_all_is_over_https() -> None:
    walks = Walks()
    walks.site.base = "https://site.test"
    walks.scp.put("a", "A")
    walks.scp.snapshot()
    walks.scp.named = [
        each.replace("https://site.test", "http://x") for each in walks.scp.named
    ]
    walks.scp.publish()
    ended = walks.visit()
    assert ended is not None
    assert "named over https, must be there too" in ended.error
    assert "no feed was found" in ended.error


def test_a_server_in_trouble_is_left_alone(walks: Walks) -> None:
    with_feed(walks)
    path = "/scp/all-1.scp.gz"
    busy = walks.answer(walks.site.url("/none"))
    for status in (429, 503, 0):
        walks.site.answers[path] = replace(busy, status=status, error="busy")
        walks.seen = b""
        ended = walks.visit()
        assert ended is not None
        assert ended.error == "http://site.test/none: busy"
        assert walks.asked == [SITEMAP, path]
    del walks.site.answers[path]
    assert walks.well() == []
    assert len(walks.known) == 10


def test_a_server_that_nobody_may_believe_is_not_waited_for(walks: Walks) -> None:
    with_feed(walks)
    nowhere = walks.answer(walks.site.url("/none"))
    walks.site.answers["/scp/all-1.scp.gz"] = replace(
        nowhere, status=0, error="the certificate is not valid", is_lasting=True
    )
    ended = walks.visit()
    assert ended is not None
    assert ended.error == ""
    assert any("the site's feed is read instead" in each for each in ended.problems)


def test_what_was_listed_before_and_has_expired_is_asked_for_no_more(
    walks: Walks,
) -> None:
    walks.asks = 0
    assert walks.visit() is None
    walks.asks = 1_000
    walks.later = timedelta(days=8)
    ended = walks.visit()
    assert ended is not None
    assert any("has expired" in each for each in ended.problems)
    assert walks.asked == [SITEMAP]


def test_a_sitemap_that_names_nothing_says_so() -> None:
    walks = Walks()
    walks.scp.forget()
    ended = walks.visit()
    assert ended is not None
    assert ended.problems == ("the sitemap names no collections",)
    assert not walks.is_read


def test_a_sitemap_that_cannot_be_read_is_an_error(walks: Walks) -> None:
    walks.site.put(SITEMAP, "<urlset>")
    ended = walks.visit()
    assert ended is not None
    assert ended.error


def test_problems_of_the_sitemap_and_of_pages_are_told(walks: Walks) -> None:
    walks.well()
    bad = walks.scp.put("bad", "Bad") | {"url": "ftp://site.example/"}
    walks.scp.delta(bad)
    walks.scp.named.append('<scp:section name="all" updateFreq="x" pages="1"/>')
    walks.scp.publish()
    ended = walks.visit()
    assert ended is not None
    assert "updateFreq" in ended.problems[0]
    assert "/url: expected an http or https URL" in ended.problems[1]


def test_blocks_that_are_passed_over_are_told_once(walks: Walks) -> None:
    """SCP, "Non-Fatal Errors": "MUST log a warning, MAY skip the block"."""
    blocks = [{"type": "hologram"}, {"type": "text", "text": "Some"}]
    for number in range(7):
        walks.scp.put(f"p{number}", f"P{number}", content=blocks)
    path = walks.scp.snapshot()

    ended = walks.visit()

    assert ended is not None
    assert ended.error == ""
    url = walks.site.url(path)
    notes = [
        f"{url}: line {n}: /content/0/type: unknown type; ignored"
        for n in range(12, 19)
    ]
    assert [each for each in ended.problems if "/content/" in each] == notes


def test_a_site_that_never_could_be_read_is_followed_by_its_feed(walks: Walks) -> None:
    """And once it can, what it has is no news."""
    walks.site.answers["/scp/all-1.scp.gz"] = walks.answer(walks.site.url("/none"))
    with_feed(walks)
    assert walks.well() == []
    assert list(walks.known) == ["//site.example/fed"]
    walks.site.put("/n", NEWS.replace("fed<", "fed2<").replace("Fed", "Fed 2"))
    assert walks.well() == ["Fed 2"]
    walks.site.answers.clear()
    walks.later = timedelta(hours=2)
    assert walks.well() == []
    assert len(walks.known) == 12
    walks.scp.delta(walks.scp.put("new", "New"))
    assert walks.well() == ["New"]


@pytest.mark.parametrize(
    "home",
    [
        None,
        "<html><body>nothing",
        "words",
        '{"version":"https://jsonfeed.org/version/1","items":[]}',
    ],
)
def test_a_feed_is_looked_for_at_the_first_page(walks: Walks, home: str | None) -> None:
    walks.site.answers["/scp/all-1.scp.gz"] = walks.answer(walks.site.url("/none"))
    if home is not None:
        walks.site.put("/", home)
    ended = walks.visit()
    assert ended is not None
    if home is not None and "jsonfeed" in home:
        assert ended.error == ""
        assert walks.is_read
    else:
        assert "answered 404 Not Found; and no feed was found" in ended.error


def test_a_feed_that_has_gone_is_looked_for_again(walks: Walks) -> None:
    walks.site.answers["/scp/all-1.scp.gz"] = walks.answer(walks.site.url("/none"))
    with_feed(walks)
    walks.well()
    del walks.site.documents["/n"]
    ended = walks.visit()
    assert ended is not None
    assert "no feed was found" in ended.error
    assert walks.asked == [SITEMAP, "/n", "/", "/n"]


@pytest.mark.parametrize(
    "packed", [b"", b"damaged", pack_state(ScpState(version=99, walk=7))]
)
def test_a_state_that_nobody_can_read_is_none(packed: bytes) -> None:
    assert read_state(packed) == ScpState()


def test_collections_are_read_as_far_as_the_bound_of_a_day() -> None:
    bounds = SiteBounds(entries=5, entries_of_day=50)
    assert bounds.of("openfeeder") == bounds
    assert bounds.of("scp").entries == 50
    assert bounds.of("scp").requests == bounds.requests


def test_a_reading_by_a_clock_that_was_ahead_puts_no_other_off(walks: Walks) -> None:
    now = walks.now.timestamp()
    ahead = ScpState(full_at=now + 4e7, retry_at=now + 4e7)

    held = capped_times(ahead, now)

    assert (held.full_at, held.retry_at) == (now, now + LAST_RETRY)


@pytest.mark.parametrize(
    ("days", "problem"), [(400, "lies in the future"), (-400, "is too long ago")]
)
def test_a_time_that_nobody_can_believe_is_named_and_the_feed_read_instead(
    walks: Walks, days: int, problem: str
) -> None:
    """Also by a visit that finds the sitemap as it was, and by one an hour later."""
    step = timedelta(days=days)
    walks.well()
    with_feed(walks)
    walks.scp.forget()
    walks.scp.reached["all"] += step
    walks.scp.at += step
    walks.later = -step
    if days < 0:  # the first that this hub sees of it
        walks.state, walks.is_read, walks.known = b"", False, {}
    walks.scp.put("new", "New")
    walks.scp.snapshot()
    for _ in range(3):
        ended = walks.visit()
        assert ended is not None
        assert ended.error == ""
        assert len(ended.problems) == 1
        assert f"{problem}; the site's feed is read instead" in ended.problems[0]
        assert walks.asked[-1] == "/n"
        walks.later += timedelta(hours=2)
    assert "New" not in walks.told
    # It is read once its time can be believed.
    walks.scp.at -= step
    walks.later += step
    walks.scp.forget()
    walks.scp.snapshot()
    ended = walks.visit()
    assert ended is not None
    assert not any("feed is read" in each for each in ended.problems)
    assert {page.reference for page in walks.known.values()} >= {
        "https://site.example/new"
    }


def test_without_a_feed_a_time_that_nobody_can_believe_is_an_error() -> None:
    walks = Walks()
    walks.scp.at += timedelta(days=400)
    walks.later = -timedelta(days=400)
    walks.scp.put("a", "A")
    walks.scp.snapshot()
    ended = walks.visit()
    assert ended is not None
    assert "lies in the future; and no feed was found" in ended.error


MISSING = "section all: a delta is missing; its changes come with the next snapshot"


@pytest.mark.parametrize("has_feed", [True, False])
def test_a_delta_that_is_not_there_is_told_and_mended_by_the_next_snapshot(
    walks: Walks, has_feed: bool
) -> None:
    walks.well()
    if has_feed:
        with_feed(walks)
    lost = walks.scp.delta(walks.scp.put("lost", "Lost"))
    del walks.site.documents[lost]
    walks.scp.delta(walks.scp.put("later", "Later"))
    for _ in range(2):
        ended = walks.visit()
        assert ended is not None
        assert ended.error == ""
        assert ended.problems[0] == MISSING
        assert f"{lost}: answered 404 Not Found" in ended.problems[1]
        assert ("the site's feed is read instead" in ended.problems[1]) is has_feed
    # What follows it is read all the same.
    assert walks.told == (["Later", "Fed"] if has_feed else ["Later"])
    walks.scp.snapshot()
    walks.scp.delta(since=walks.scp.at)
    ended = walks.visit()
    assert ended is not None
    assert ended.problems == ()
    assert "Lost" in walks.told


def test_a_snapshot_that_is_named_already_mends_a_missing_delta_at_once(
    walks: Walks,
) -> None:
    for number in range(50):  # the snapshot is long, so that deltas come first
        walks.scp.put(f"known-{number}", f"Known {number}")
    walks.well()
    lost = walks.scp.delta(walks.scp.put("lost", "Lost"))
    del walks.site.documents[lost]
    since = walks.scp.at
    walks.scp.snapshot()
    walks.scp.delta(walks.scp.put("later", "Later"), since=since)  # joins the lost one
    ended = walks.visit()
    assert ended is not None
    assert lost in walks.asked
    assert ended.problems == ()
    assert {"Lost", "Later"} <= set(walks.told)


def test_a_missing_delta_whose_sitemap_is_not_sent_again_is_passed_by(
    walks: Walks,
) -> None:
    walks.well()
    lost = walks.scp.delta(walks.scp.put("lost", "Lost"))
    del walks.site.documents[lost]
    walks.scp.delta(walks.scp.put("later", "Later"))
    walks.asks = 0
    assert walks.visit() is None  # exhausted before it was asked for
    walks.asks = 9
    ended = walks.visit()
    assert ended is not None
    assert MISSING in ended.problems
    assert walks.told == ["Later"]


def test_a_gap_between_deltas_is_told_until_it_is_mended(walks: Walks) -> None:
    walks.well()
    since = walks.scp.at + timedelta(seconds=30)
    walks.scp.delta(walks.scp.put("new", "New"), since=since)
    for _ in range(2):
        ended = walks.visit()
        assert ended is not None
        assert ended.problems == (MISSING,)
