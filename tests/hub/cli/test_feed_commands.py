from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi, feed_document

Fanfare = Callable[..., Result]
ADD = "POST /api/feeds"
IMPORT = "POST /api/imports"
URL = "https://example.org/feed.xml"


def test_adding_a_feed_says_what_was_found(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, feed_document())
    result = fanfare("feeds", "add", URL)
    assert result.exit_code == 0
    assert f"added  {URL}  (feed 7)" in result.stdout
    assert "  Example: 3 entries\n  next poll 2026-01-01 12:15:00Z (" in result.stdout
    assert " ago): it is new\n" in result.stdout
    assert "to poll a feed now: fanfare feeds fetch URL|ID\n" in result.stdout
    assert api.tokens == ["Bearer token"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (feed_document(added=False), "no category, public, no credentials"),
        (
            feed_document(
                added=False, category="news", private=True, has_credentials=True
            ),
            "category news, private, with credentials",
        ),
    ],
)
def test_adding_a_known_feed_says_so_and_what_it_has_now(
    fanfare: Fanfare, api: FakeApi, document: dict[str, object], words: str
) -> None:
    api.answers[ADD] = (200, document)
    result = fanfare("feeds", "add", URL, "--category", "news")
    assert result.exit_code == 0
    assert f"known  {URL}  (feed 7)" in result.stdout
    assert f"\n  {words}\n" in result.stdout


def test_options_of_add_are_sent(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, feed_document())
    fanfare(
        *("feeds", "add", URL, "--category", "news", "--private"),
        *("--header", "X-Key: 1: 2", "--basic", "me:secret"),
        *("--subscription-callback", "https://you.example/may"),
    )
    assert api.requests == [
        (
            ADD,
            {
                "url": URL,
                "category": "news",
                "private": True,
                "headers": {"X-Key": "1: 2"},
                "basic": "me:secret",
                "discover": True,
                "subscription_callback": "https://you.example/may",
            },
        )
    ]


EDIT = "PATCH /api/feeds/7"


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (("--private",), {"private": True}),
        (("--public",), {"private": False}),
        (("--category", ""), {"category": ""}),
        (("--category", "sport"), {"category": "sport"}),
        (("--new-url", "example.net/rss"), {"url": "https://example.net/rss"}),
        (("--period", "90"), {"own_period": 90}),
        (("--period", "15m"), {"own_period": 900}),
        (("--period", "0"), {"own_period": 0}),
        (
            ("--basic", "a:b", "--header", "X-Key: k"),
            {"basic": "a:b", "headers": {"X-Key": "k"}},
        ),
        (("--no-credentials",), {"basic": ""}),
        (
            ("--publish-secret", "s", "--subscription-callback", ""),
            {"publish_secret": "s", "subscription_callback": ""},
        ),
    ],
)
def test_edit_sends_what_is_to_change_and_says_what_follows(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...], sent: dict[str, object]
) -> None:
    follows = ["it is private: it leaves", "2 subscriptions of others ended"]
    edited = feed_document(private=True, category="news")
    api.answers[EDIT] = (200, {**edited, "follows": follows, "subscriptions_ended": 2})

    result = fanfare("feeds", "edit", "7", *options)

    assert api.requests == [(EDIT, sent)]
    assert result.exit_code == 0
    is_fetched = not {"--new-url", "--basic"}.isdisjoint(options)
    assert result.stdout.splitlines() == [
        f"edited  {URL}  (feed 7)",
        "  category news, private, no credentials",
        *(["  Example: 3 entries"] if is_fetched else []),
        *(f"  {each}" for each in follows),
    ]


@pytest.mark.parametrize(
    "options", [(), ("--no-credentials", "--basic", "a:b"), ("--period", "soon")]
)
def test_edit_needs_to_know_what_is_to_change(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...]
) -> None:
    assert fanfare("feeds", "edit", "7", *options).exit_code == 2
    assert api.requests == []


CHOICES = [
    {"url": "https://example.org/news", "title": "News", "type": "application/rss+xml"},
    {"url": "https://example.org/blog", "title": "", "type": ""},
]


def test_of_a_page_that_leaves_a_choice_nothing_is_added(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[ADD] = (300, {"url": URL, "feeds": CHOICES})
    result = fanfare("feeds", "add", URL)
    assert result.exit_code == 3
    assert f"not added  {URL}: the page names several feeds:" in result.stdout
    assert "  https://example.org/news  (News, application/rss+xml)\n" in result.stdout
    assert "  https://example.org/blog\n" in result.stdout
    assert "nothing added for 1 page; choose a feed" in result.stderr


def test_a_page_itself_is_added_if_that_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, feed_document())
    fanfare("feeds", "add", URL, "--exactly")
    assert api.requests[0][1]["discover"] is False


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (
            {"is_feed": True, "format": "rss", "title": "T", "entries": 2},
            0,
            f"a feed  {URL}\n  rss, T: 2 entries\n",
        ),
        (
            {"feeds": CHOICES, "best": CHOICES[1]["url"], "reason": "the reason"},
            0,
            "  https://example.org/blog\n"
            "  https://example.org/news  (News, application/rss+xml)\n"
            "  `fanfare feeds add` takes the first: the reason\n",
        ),
        ({"feeds": CHOICES}, 3, "  https://example.org/news  (News, app"),
        ({"error": "this is a PNG image, not a feed"}, 1, ""),
    ],
)
def test_discovering_says_what_is_there(
    fanfare: Fanfare, api: FakeApi, found: dict[str, object], code: int, words: str
) -> None:
    nothing = {"is_feed": False, "feeds": [], "best": None, "error": "", "reason": ""}
    api.answers["POST /api/discover"] = (200, {**nothing, **found})
    result = fanfare("feeds", "discover", URL)
    assert result.exit_code == code
    assert words in result.stdout
    if code:
        assert str(found.get("error", "2 feeds to choose from")) in result.stderr
    as_json = fanfare("feeds", "discover", URL, "--json")
    assert json.loads(as_json.stdout) == {**nothing, **found}


def test_a_feed_that_fails_is_kept_and_the_command_fails(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[ADD] = (201, feed_document(error="the host's name cannot be resolved"))
    result = fanfare("feeds", "add", URL)
    assert result.exit_code == 1
    assert "(feed 7)\n  error: the host's name cannot be resolved" in result.stderr
    assert "1 of 1 feeds failed" in result.stderr


def test_a_file_of_urls_may_come_from_any_editor(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[IMPORT] = (200, imported)
    path = tmp_path / "urls.txt"
    path.write_bytes(f"\ufeff{URL}\r\n\r\n  # later: {URL}/2\r\n".encode())
    assert fanfare("feeds", "add", "--file", str(path)).exit_code == 0
    assert [body["feeds"] for _, body in api.requests] == [[{"url": URL}]]


def test_a_feed_that_takes_long_is_no_failure(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, feed_document(last_fetch=None))
    result = fanfare("feeds", "add", URL)
    assert result.exit_code == 0
    assert "not fetched yet; see `fanfare feeds show 7`" in result.stdout


def test_of_several_urls_each_has_its_outcome(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (422, {"detail": "url: expected an absolute http or https URL"})
    result = fanfare("feeds", "add", "a", "b")
    assert result.exit_code == 1
    assert "not added  a\n  url: expected" in result.stderr
    assert "not added  b\n  url: expected" in result.stderr
    assert "2 of 2 feeds failed" in result.stderr


def test_urls_come_from_a_file_one_a_line(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[IMPORT] = (200, imported)
    file = tmp_path / "urls.txt"
    file.write_text("# mine\nhttps://a.example/\n\n  https://b.example/\n")
    result = fanfare("feeds", "add", "--file", str(file), "--category", "S")
    assert result.exit_code == 0
    assert result.stdout.count("added  ") == 2
    ((where, body),) = api.requests
    assert where == "POST /api/imports?wait=15"
    assert [each["url"] for each in body["feeds"]] == [
        "https://a.example/",
        "https://b.example/",
    ]
    assert (body["category"], body["discover"]) == ("S", True)


def test_of_a_file_of_urls_each_has_its_outcome(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[IMPORT] = (200, imported)
    file = tmp_path / "urls.txt"
    file.write_text("known\nrefused\nundecided\ntrouble\n")
    result = fanfare("feeds", "add", "--file", str(file))
    assert result.exit_code == 1
    assert "known  known" in result.stdout
    assert (
        "not added  undecided: the page names several feeds:\n  https://a.example/"
        in (result.stdout)
    )
    assert "not added  refused\n  url: expected" in result.stderr
    assert "error: the host's name cannot be resolved" in result.stderr
    assert "2 of 4 feeds failed" in result.stderr


def test_a_file_of_any_length_is_added_part_by_part(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[IMPORT] = (200, imported)
    file = tmp_path / "urls.txt"
    file.write_text("".join(f"https://a.example/{n}\n" for n in range(1_000)))
    result = fanfare("feeds", "add", "--file", str(file))
    assert result.stdout.count("added  ") == 1_000
    sizes = [len(body["feeds"]) for _, body in api.requests]
    assert sorted(sizes) == [40] + [64] * 15


def imported(asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to a part: each feed is added, but for those that say otherwise."""
    feeds = []
    for each in asked["feeds"]:
        url = each["url"]
        outcome = url if url in ("known", "refused", "undecided") else "added"
        error = "the host's name cannot be resolved" if url == "trouble" else ""
        has_feed = outcome in ("added", "known")
        feeds.append(
            {
                "url": url,
                "outcome": outcome,
                "reason": "url: expected a URL" if outcome == "refused" else "",
                "feed": feed_document(url=url, error=error) if has_feed else None,
                "feeds": [{"url": "https://a.example/", "title": "", "type": ""}],
            }
        )
    return {"feeds": feeds}


def test_a_file_that_is_not_utf_8_is_wrong_usage(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "urls.txt"
    file.write_bytes("https://a.example/\nhttps://b.example/é\n".encode("latin-1"))
    result = fanfare("feeds", "add", "--file", str(file))
    assert result.exit_code == 2
    assert "Invalid value for --file: expected UTF-8 text" in result.stderr
    assert api.requests == []


@pytest.mark.parametrize(
    "arguments", [("feeds", "add"), ("feeds", "add", URL, "--header", "no colon")]
)
def test_wrong_usage_of_add_is_refused(
    fanfare: Fanfare, api: FakeApi, arguments: tuple[str, ...]
) -> None:
    assert fanfare(*arguments).exit_code == 2
    assert api.requests == []


FAILING = {"state": "failing", "since": "2026-01-01T12:00:00Z", "reason": "a 500"}


def test_a_list_of_nothing_but_failing_feeds_has_room_for_the_reason_and_the_url(
    fanfare: Fanfare, api: FakeApi
) -> None:
    page = {"feeds": [feed_document(health=FAILING)], "next": None}
    api.answers["GET /api/feeds"] = (200, page)
    heading, row = fanfare("feeds", "list", "--failing").stdout.splitlines()
    assert heading.split() == ["ID", "STATE", "SINCE", "WHY", "URL"]
    assert re.split("  +", row)[3:] == ["a 500", URL]


def test_the_list_is_a_table_over_all_pages(fanfare: Fanfare, api: FakeApi) -> None:
    feed = feed_document(health=FAILING, category="news")
    page = {"feeds": [feed, feed_document()], "next": None}
    api.answers["GET /api/feeds"] = (200, page)
    result = fanfare("feeds", "list", "--state", "active")
    heading, row, _ = result.stdout.splitlines()
    assert heading.split()[:4] == ["ID", "STATE", "SINCE", "HTTP"]
    cells = re.split("  +", row)
    assert cells[:2] == ["7", "failing"]
    assert cells[3:] == ["200", "-", "3", "15 min", "news", "a 500", URL]
    assert api.requests[0][0] == "GET /api/feeds?limit=500&state=active"


def test_a_list_asks_for_what_is_given_and_ends_at_its_limit(
    fanfare: Fanfare, api: FakeApi
) -> None:
    listed = [feed_document(id=number) for number in (7, 8, 9)]
    page = {"feeds": listed, "cursor": "a place", "next": None}
    api.answers["GET /api/feeds"] = (200, page)
    same = fanfare("feeds", "list", "--json").stdout  # whose second page is the first
    assert len(json.loads(same)) == 6
    api.requests.clear()
    result = fanfare(
        *("feeds", "list", "--failing", "--state", "gone", "--state", "slow"),
        *("--category", "", "--search", "a b", "--since", "7d", "--within", "2w"),
        *("--sort", "-since", "--limit", "4", "--json"),
    )
    assert [each["id"] for each in json.loads(result.stdout)] == [7, 8, 9, 7]
    asked = [
        parse_qsl(target.partition("?")[2], keep_blank_values=True)
        for target, _ in api.requests
    ]
    assert sorted(asked[0]) == [
        ("category", ""),
        ("failing", "true"),
        ("limit", "500"),
        ("search", "a b"),
        ("since", "7d"),
        ("sort", "-since"),
        ("state", "gone"),
        ("state", "slow"),
        ("within", "2w"),
    ]
    assert ("cursor", "a place") in asked[1]


def test_a_list_without_any_says_whether_there_are_others(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/feeds"] = (200, {"feeds": [], "next": None})
    assert fanfare("feeds", "list", "--failing").stdout == "no feeds match\n"


def test_the_list_goes_on_where_a_page_ended(fanfare: Fanfare, api: FakeApi) -> None:
    pages = iter([([feed_document()], 7), ([feed_document(id=8)], None)])

    class Paged(FakeApi):
        def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
            feeds, following = next(pages)
            return 200, json.dumps({"feeds": feeds, "next": following}).encode()

    api.answer = Paged().answer  # type: ignore[method-assign]
    assert [
        feed["id"] for feed in json.loads(fanfare("feeds", "list", "--json").stdout)
    ] == [7, 8]


def test_an_empty_list_says_what_to_do(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds"] = (200, {"feeds": [], "next": None})
    assert "fanfare feeds add URL" in fanfare("feeds", "list").stdout


def test_show_explains_a_feed_and_if_asked_every_term(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/feeds/7"] = (200, feed_document())
    lines = fanfare("feeds", "show", "7").stdout
    assert "because             it is new" in lines
    assert "wanted" not in lines
    lines = fanfare("feeds", "show", "7", "--verbose").stdout
    assert "last answer         Fetched (ring) 200 900 and parsed 3/3 entries" in lines
    assert 'etag                "abc"' in lines
    assert "subscribers         2" in lines
    late = "half within 5 min 10 s of publication, 99 % within 29 min 20 s, of 12"
    assert f"new entries         {late}" in lines
    assert "first delivery" not in lines  # none yet
    assert "wanted  900 s  the rule" in lines


def test_show_tells_what_is_odd_about_the_entries(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/feeds/7"] = (
        200,
        feed_document(
            bozo_rank=0.25,
            generated_ids=True,
            rekeyed=1,
            rekeyed_at="2026-01-01T10:00:00Z",
            gap_at="2026-01-01T11:00:00Z",
            dropped=2,
            problems=["a second entry with the id 1 was left out"],
        ),
    )
    text = fanfare("feeds", "show", "7").stdout
    assert "bozo rank           0.25" in text
    assert "ids                 some were made by the hub" in text
    assert (
        "re-keyed            1 known entry under new ids, 2026-01-01 10:00:00Z" in text
    )
    assert "gap                 no entry was known, 2026-01-01 11:00:00Z" in text
    assert "left out            2 entries of the last document" in text
    assert "note                a second entry with the id 1 was left out" in text


def test_show_tells_what_maintenance_found(fanfare: Fanfare, api: FakeApi) -> None:
    found = {
        "maintained_at": "2026-01-01T10:00:00Z",
        "popularity": 1.1,
        "porn_rank": 0.3,
        "is_stale": True,
        "related": [8, 9],
    }
    api.answers["GET /api/feeds/7"] = (200, feed_document(**found))
    text = fanfare("feeds", "show", "7").stdout
    assert "popularity          1.1" in text
    assert "porn rank           0.3" in text
    assert "stale               yes: no document could be parsed for days" in text
    assert "related feeds       8, 9" in text
    assert "maintained          2026-01-01 10:00:00Z" in text


def test_show_is_silent_about_what_is_not_odd(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds/7"] = (200, feed_document())
    text = fanfare("feeds", "show", "7").stdout
    for word in (
        "bozo rank",
        "made by the hub",
        "re-keyed",
        "gap",
        "left out",
        "note ",
        "popularity",
    ):
        assert word not in text


A_SITE = {
    "kind": "openfeeder",
    "pages": 120,
    "is_read": True,
    "entries_of_day": 3,
    "phase": "",
    "cursor": "eyJ0",
    "walked_at": "2026-01-01T10:00:00Z",
    "reread_at": "2026-01-01T09:00:00Z",
}


@pytest.mark.parametrize("verb", ["show", "explain"])
def test_how_far_the_reading_of_a_site_has_come_is_told(
    fanfare: Fanfare, api: FakeApi, verb: str
) -> None:
    under_way = {"is_read": False, "cursor": "", "walked_at": None, "reread_at": None}
    phase = "walking the index, at page 3"

    def tell(**site: object) -> str:
        api.answers["GET /api/feeds/7"] = (200, feed_document(site=site, entries=120))
        api.answers[PLAN] = (200, plan_document(site=site))
        return " ".join(fanfare("feeds", verb, "7").stdout.split())

    text, early = tell(**A_SITE), tell(**{**A_SITE, **under_way, "phase": phase})

    assert "site openfeeder, 120 pages known changes since eyJ0" in text
    assert "full walk 2026-01-01 10:00:00Z" in text
    assert "every page read 2026-01-01 09:00:00Z" in text
    assert "first reading under way: nothing is sent yet" in early
    assert f"under way {phase} changes since not reported by the site" in early
    assert "full walk not yet" in early
    if verb == "show":
        assert "entries 120 pages of the site" in text


def plan_document(**members: object) -> dict[str, object]:
    term = {"name": "wanted", "value": 1_800.0, "unit": "s", "note": "the wanted"}
    known = {
        "id": 7,
        "url": URL,
        "state": "active",
        "next_fetch": "2026-01-01T12:15:00Z",
        "sentence": "next fetch at noon because of the price",
        "period": 900.0,
        "rate": 2.0,
        "rate_now": 4.25,
        "price": 75.0,
        "hints": {},
        "hints_in_force": ["fresh", "skip"],
        "hours": [0.0] * 100 + [9.5] * 68,
        "minutes": [1.0] * 12,
        "terms": [term],
        "site": None,
        "push": None,
    }
    return {**known, **members}


PLAN = "GET /api/feeds/7/plan"


def test_explain_says_in_a_sentence_why_and_if_asked_shows_every_number(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[PLAN] = (200, plan_document())

    assert "the wanted" not in fanfare("feeds", "explain", "7").stdout
    lines = fanfare("feeds", "explain", "7", "--verbose").stdout.splitlines()

    words = list(map(str.split, lines))
    assert lines[0] == "next fetch at noon because of the price"
    assert ["rate", "now", "4.25", "entries", "a", "day"] in words
    assert ["hints", "in", "force", "fresh,", "skip"] in words
    assert ["wanted", "1800", "s", "the", "wanted"] in words
    assert ["Fri", *["0.0"] * 4, *["9.5"] * 20] in words


def test_explain_names_no_hints_where_there_are_none(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[PLAN] = (200, plan_document(hints_in_force=[]))

    lines = fanfare("feeds", "explain", "7").stdout.splitlines()

    assert ["hints", "in", "force", "none"] in map(str.split, lines)


def test_explain_as_json_is_what_the_hub_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[PLAN] = (200, plan_document())

    document = json.loads(fanfare("feeds", "explain", "7", "--json").stdout)

    assert document == plan_document()


HISTORY = "GET /api/feeds/7/history"


def a_history(*polls: dict[str, object]) -> dict[str, object]:
    return {"id": 7, "url": URL, "polls": list(polls)}


POLLS = a_history(
    {
        "at": "2026-01-01T12:15:00Z",
        "reason": "retry_after_failure",
        "outcome": "new",
        "code": 200,
        "milliseconds": 81,
        "entries": 2,
        "asked_by": None,
    },
    {
        "at": "2026-01-01T12:00:00Z",
        "reason": "asked_for",
        "outcome": "failed",
        "code": 0,
        "milliseconds": 20_000,
        "entries": 0,
        "asked_by": "operator by cli",
    },
)


def test_history_has_a_line_for_each_poll(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[HISTORY] = (200, POLLS)

    head, new, failed = fanfare("feeds", "history", "7").stdout.splitlines()

    assert head.split() == ["AT", "REASON", "OUTCOME", "HTTP", "MS", "ENTRIES"]
    assert new.startswith("2026-01-01 12:15:00Z (")
    assert new.endswith("  retry after failure          new      200   81     2")
    assert failed.endswith("  asked for (operator by cli)  failed   -     20000")
    assert json.loads(fanfare("feeds", "history", "7", "--json").stdout) == POLLS


def test_a_feed_that_was_never_polled_has_no_history(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[HISTORY] = (200, a_history())

    told = fanfare("feeds", "history", "7").stdout

    assert told == f"of {URL} no poll is kept, or none of that time\n"


def test_a_gap_is_explained_by_the_polls_beside_it_and_by_pauses(
    fanfare: Fanfare, api: FakeApi
) -> None:
    new, failed = POLLS["polls"]
    at = "2026-01-01T12:0{}:00Z".format
    ended = {
        **{"paused_at": at(1), "paused_by": "ann by pages"},
        **{"resumed_at": at(2), "resumed_by": None},
    }
    open_one = {**ended, "paused_at": at(3), "resumed_at": None}
    gap = {"before": failed, "after": new, "pauses": [ended, open_one]}
    api.answers[HISTORY] = (200, {**a_history(), **gap})

    told = fanfare("feeds", "history", "7", "--since", "1h").stdout.splitlines()[1:]

    assert [re.sub(r" \((in )?\d[^)]*\)", "", each) for each in told] == [
        "the poll before: 2026-01-01 12:00:00Z, asked for (operator by cli), failed,"
        " HTTP -",
        "the poll after: 2026-01-01 12:15:00Z, retry after failure, new, HTTP 200",
        "paused from 2026-01-01 12:01:00Z (ann by pages) until 2026-01-01 12:02:00Z",
        "paused since 2026-01-01 12:03:00Z (ann by pages)",
    ]


def test_show_tells_errors_redirects_and_limits(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds/7"] = (
        200,
        feed_document(
            code=None,
            private=True,
            error="timed out",
            failures=3,
            failing_since="2026-01-01T00:00:00Z",
            fetch_url="https://example.org/new.xml",
            fresh_until="2026-01-01T13:00:00Z",
            retry_after="2026-01-01T14:00:00Z",
            validators=None,
            answers_304=False,
        ),
    )
    lines = fanfare("feeds", "show", "7").stdout
    for part in (
        "private",
        "never fetched",
        "timed out (3 times in a row)",
        "https://example.org/new.xml",
        "2026-01-01 13:00:00Z",
        "2026-01-01 14:00:00Z",
    ):
        assert part in lines


def test_a_feed_is_named_by_url_too(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds"] = (200, {"feeds": [feed_document()], "next": None})
    api.answers["GET /api/feeds/7"] = (200, feed_document())
    assert json.loads(fanfare("feeds", "show", URL, "--json").stdout)["id"] == 7


ADDED, KNOWN = feed_document(added=True), feed_document(added=False)


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("example.org", "https://example.org"),
        ("example.org:8443/news?a=b", "https://example.org:8443/news?a=b"),
        ("localhost:8080/feed", "https://localhost:8080/feed"),
        ("http://example.org", "http://example.org"),
        ("nonsense", "nonsense"),
        ("me:secret@example.org", "me:secret@example.org"),
    ],
)
def test_a_url_may_be_typed_without_its_scheme(
    fanfare: Fanfare, api: FakeApi, typed: str, asked: str
) -> None:
    api.answers[ADD] = (201, ADDED)
    api.answers["POST /api/discover"] = (200, {"is_feed": True})
    fanfare("feeds", "add", typed)
    fanfare("feeds", "discover", typed, "--json")
    assert [body["url"] for _, body in api.requests] == [asked, asked]


@pytest.mark.parametrize(
    ("answer", "outcome", "code"),
    [
        ((201, ADDED), {"outcome": "added", "feed": ADDED}, 0),
        ((200, KNOWN), {"outcome": "known", "feed": KNOWN}, 0),
        ((300, {"feeds": CHOICES}), {"outcome": "undecided", "feeds": CHOICES}, 3),
        ((422, {"detail": "no"}), {"outcome": "refused", "reason": "no"}, 1),
    ],
)
def test_programs_are_told_what_became_of_each(
    fanfare: Fanfare,
    api: FakeApi,
    answer: tuple[int, dict[str, object]],
    outcome: dict[str, object],
    code: int,
) -> None:
    api.answers[ADD] = answer
    result = fanfare("feeds", "add", URL, "--json")
    assert result.exit_code == code
    expected = {"url": URL, "reason": "", "feed": None, "feeds": [], **outcome}
    assert json.loads(result.stdout) == [expected]


def test_urls_come_from_standard_input_too(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[IMPORT] = (200, imported)
    api.answers[ADD] = (201, ADDED)
    lines = "\ufeffa.example/feed\n# b\n\nhttps://c.example/\n".encode()
    result = fanfare("feeds", "add", "-", URL, input=lines)
    assert result.exit_code == 0
    bodies = [body for _, body in api.requests]
    assert bodies[0]["url"] == URL
    assert bodies[1]["feeds"] == [
        {"url": "https://a.example/feed"},
        {"url": "https://c.example/"},
    ]


def test_urls_are_listed_for_a_pipe(fanfare: Fanfare, api: FakeApi) -> None:
    listed = [feed_document(), feed_document(url="https://a.example/\u202e")]
    api.answers["GET /api/feeds"] = (200, {"feeds": listed, "next": None})
    assert (
        fanfare("feeds", "list", "--urls").stdout
        == f"{URL}\nhttps://a.example/\u202e\n"
    )
    assert fanfare("feeds", "list", "--urls", "--json").exit_code == 2


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("fetch", feed_document(fetched=True)),
        ("pause", feed_document()),
        ("resume", feed_document()),
        ("remove", {"subscriptions_ended": 2}),
    ],
)
def test_of_several_feeds_one_that_fails_keeps_none_from_it(
    fanfare: Fanfare, api: FakeApi, verb: str, answer: dict[str, object]
) -> None:
    operation = f"POST /api/feeds/7/{verb}"
    if verb == "remove":
        operation = "DELETE /api/feeds/7"
    api.answers[operation] = (200, answer)
    given = ("feeds", verb, "9", "-", "--json")
    result = fanfare(*given, input=b"7\n8\n")
    assert result.exit_code == 1
    assert [each["id"] for each in json.loads(result.stdout)] == [7]
    assert "9\n  no /api/feeds/9" in result.stderr
    assert "fanfare: 2 of 3 feeds failed" in result.stderr


def test_an_unknown_url_is_a_failure(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/feeds"] = (200, {"feeds": [], "next": None})
    result = fanfare("feeds", "fetch", URL)
    assert result.exit_code == 1
    assert f"fanfare: no feed {URL}" in result.stderr


def test_a_fetch_says_how_many_entries_are_new(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["POST /api/feeds/7/fetch"] = (200, feed_document(fetched=True))
    api.answers["GET /api/feeds/7/history"] = (200, {"polls": [{"entries": 2}]})

    assert "  Example: 3 entries, 2 new\n" in fanfare("feeds", "fetch", "7").stdout


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_verbs_are_sent_to_the_feed(fanfare: Fanfare, api: FakeApi, verb: str) -> None:
    api.answers[f"POST /api/feeds/7/{verb}"] = (200, feed_document(fetched=True))
    result = fanfare("feeds", verb, "7")
    assert result.exit_code == 0
    assert URL in result.stdout


def test_a_fetch_that_fails_is_exit_code_1(fanfare: Fanfare, api: FakeApi) -> None:
    document = feed_document(fetched=True, error="empty")
    api.answers["POST /api/feeds/7/fetch"] = (200, document)
    assert fanfare("feeds", "fetch", "7").exit_code == 1
    assert "2 of 2 feeds failed" in fanfare("feeds", "fetch", "7", "9").stderr


@pytest.mark.parametrize(
    ("retry_after", "words"),
    [
        ("2026-01-01T14:00:00Z", "asks for no request until 2026-01-01 14:00:00Z"),
        (None, "has not answered yet"),
    ],
)
def test_a_fetch_that_did_not_happen_is_said_not_to_have(
    fanfare: Fanfare, api: FakeApi, retry_after: str | None, words: str
) -> None:
    document = feed_document(fetched=False, retry_after=retry_after)
    api.answers["POST /api/feeds/7/fetch"] = (200, document)
    result = fanfare("feeds", "fetch", "7")
    assert result.exit_code == 1
    assert words in result.stderr


def test_removing_says_how_many_subscriptions_ended(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["DELETE /api/feeds/7"] = (200, {"subscriptions_ended": 2})
    assert "2 subscriptions ended" in fanfare("feeds", "remove", "7").stdout


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            "dead",
            "none: it answered nothing but 404 for days; `fanfare feeds resume 7`",
        ),
        ("gone", "none: it answered 410; `fanfare feeds resume 7` polls it again"),
        ("paused", "none; `fanfare feeds resume 7` polls it again"),
        ("removed", "none: removed; add it again"),
        ("active", "2026-01-01 12:15:00Z"),
    ],
)
def test_show_says_why_a_feed_is_not_polled(
    fanfare: Fanfare, api: FakeApi, state: str, words: str
) -> None:
    api.answers["GET /api/feeds/7"] = (200, feed_document(state=state))
    result = fanfare("feeds", "show", "7")
    assert f"next fetch          {words}" in result.stdout


def test_a_fetch_does_not_promise_that_a_dead_feed_is_polled_again(
    fanfare: Fanfare, api: FakeApi
) -> None:
    document = feed_document(fetched=True, error="answered 404", state="dead")
    api.answers["POST /api/feeds/7/fetch"] = (200, document)
    result = fanfare("feeds", "fetch", "7")
    assert result.exit_code == 1
    assert "dead: not polled until `fanfare feeds resume 7`" in result.stderr
    assert "next poll" not in result.stderr


REPORT = "GET /api/findings"


def found(id: int, *kinds: str) -> dict[str, object]:
    return {
        "id": id,
        "url": f"https://feed.example/{id}",
        "title": "",
        "state": "active",
        "polls_per_entry": None,
        "findings": [
            {"kind": kind, "what": f"it is {kind}", "suggestion": f"about {kind}"}
            for kind in kinds
        ],
    }


def test_the_report_goes_by_kind_with_each_suggestion_once(
    fanfare: Fanfare, api: FakeApi
) -> None:
    feeds = [found(1, "moved", "wasteful"), found(2, "dead"), found(3, "moved")]
    api.answers[REPORT] = (200, {"feeds": feeds, "next": None})

    lines = fanfare("feeds", "report").stdout.splitlines()

    heads = [line for line in lines if line.endswith(("feed", "feeds"))]
    assert heads == ["dead: 1 feed", "moved: 2 feeds", "wasteful: 1 feed"]
    assert lines.count("  about moved") == 1
    assert ["3", "it", "is", "moved", "https://feed.example/3"] in map(str.split, lines)
    assert lines[-1] == "3 feeds reported"


def test_the_report_of_one_kind_asks_for_that(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[REPORT] = (200, {"feeds": [], "next": None})

    result = fanfare("feeds", "report", "--kind", "dead")

    assert result.stdout == "nothing to report\n"
    assert "kind=dead" in api.requests[-1][0]


def test_the_report_as_json_is_what_the_hub_said(
    fanfare: Fanfare, api: FakeApi
) -> None:
    feeds = [found(1, "hub")]
    api.answers[REPORT] = (200, {"feeds": feeds, "next": None})

    assert json.loads(fanfare("feeds", "report", "--json").stdout) == feeds


PUSH = {
    "way": "websub",
    "hub": "https://hub.example/",
    "topic": "https://example.org/feed.xml",
    "state": "subscribed",
    "is_trusted": True,
    "until": "2026-02-01T12:00:00Z",
    "asked_at": "2026-01-01T12:00:00Z",
    "retry_at": None,
    "error": "",
    "pushed_at": "2026-01-02T12:00:00Z",
    "brought": 7,
    "late": 1,
    "missed": 2,
    "foreign": 0,
}


@pytest.mark.parametrize(
    ("changes", "shown", "not_shown"),
    [
        (
            {},
            ["subscribed; polled rarely", "7 brought, 1 late, 2 missed"],
            "hub's error",
        ),
        (
            {
                "state": "waiting",
                "is_trusted": False,
                "until": None,
                "pushed_at": None,
                "error": "the hub answered 500",
                "retry_at": "2026-01-03T12:00:00Z",
            },
            [
                "waiting; polled like any other feed",
                "the hub answered 500",
                "asked again",
            ],
            "pushed until",
        ),
    ],
)
def test_show_tells_how_a_feed_is_pushed(
    fanfare: Fanfare,
    api: FakeApi,
    changes: dict[str, object],
    shown: list[str],
    not_shown: str,
) -> None:
    push = {**PUSH, **changes}
    api.answers["GET /api/feeds/7"] = (200, feed_document(push=push))
    text = fanfare("feeds", "show", "7").stdout
    assert all(each in text for each in shown), text
    assert not_shown not in text
