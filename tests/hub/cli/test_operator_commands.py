from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from threading import Event
from typing import Any

import pytest
from click.testing import Result

import hub
from hub.cli.feed_facts import delay_facts
from tests.support.fake_api import FakeApi, freshness_document
from tests.support.terminal import run_in_terminal

Fanfare = Callable[..., Result]


def health(**changes: object) -> dict[str, Any]:
    backlog = dict.fromkeys(
        (
            "feeds",
            "subscriptions",
            "fanouts",
            "chunks",
            "retrying",
            "dead_letters",
        ),
        0,
    )
    document: dict[str, Any] = {
        "ready": True,
        "errors": [],
        "warnings": [],
        "conditions": [],
        "version": "1",
        "uptime": 90.0,
        "feed_states": {"ok": 990, "failing": 10, "paused": 0},
        "subscription_states": {"ok": 200, "failing": 0},
        "ended_subscriptions": {"gone": 2, "gone_of_day": 1, "ended": 1_234},
        "backlog": {**backlog, "oldest_due": None, "oldest_undelivered": None},
        "database": {"location": "/srv/hub.db", "size_bytes": 4096},
        "freshness": freshness_document(undated=3, live_lag=0.2, split_per_second=12.5),
        "disk": {
            "entries": 700_000_000,
            "search": 350_000_000,
            "seen": 30_000_000,
            "deliveries": 1_200_000,
            "other": 4_096,
            "free_pages": 0,
            "collections": 45_000_000,
            "disk_free": 80_000_000_000,
            "disk_size": 252_000_000_000,
            "outlook": "At this rate (1.2 GB a day) the log …",
        },
        "search": {"state": "complete", "days": None, "share": 1.0},
    }
    return {**document, **changes}


@pytest.mark.parametrize(
    ("p50", "p99", "said"),
    [
        (
            9,
            None,
            "half within 9 s of publication, over 1 % later than is counted, of 12",
        ),
        (
            None,
            None,
            "over half later than is counted after publication, over 1 % later than is"
            " counted, of 12",
        ),
    ],
)
def test_delays_beyond_what_is_counted_are_those_of_the_rest(
    p50: float | None, p99: float | None, said: str
) -> None:
    none = {"entries": 0, "p50": None, "p99": None}
    delay = {"entries": 12, "p50": p50, "p99": p99}
    facts = delay_facts({"publication_to_commit": delay, "commit_to_delivery": none})
    assert facts == [("new entries", said), ("first delivery", "")]


def test_a_ready_hub_is_exit_code_0(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/health"] = (200, health())
    result = fanfare("health")
    assert result.exit_code == 0
    assert "up for         1 min 30 s" in result.stdout
    listed = "(fanfare feeds list --failing)"
    assert f"feeds          1,000: 990 ok, 10 failing {listed}\n" in result.stdout
    assert "next poll      none is due\n" in result.stdout
    assert "subscriptions  200: all ok\n" in result.stdout
    over = "2 gone (1 in the last day), 1,234 ended otherwise"
    assert f"over           {over} (fanfare subs list --state over)\n" in result.stdout
    assert "to deliver     no first delivery waits\n" in result.stdout
    assert "retrying       none\ngiven up       none\n" in result.stdout
    late = (
        "half within 5 min 10 s of publication, 99 % within 29 min 20 s, of 12;"
        " 3 without a believable date"
    )
    assert late in result.stdout
    assert "live streams   0.2 s behind" in result.stdout
    assert "deliveries     12.5 a second, in the last minute" in result.stdout
    assert "entries 700 MB, search index 350 MB, seen entries 30 MB" in result.stdout
    assert "free pages 0 B, collections 45 MB" in result.stdout
    assert "disk           80 GB of 252 GB free" in result.stdout
    assert "outlook        At this rate (1.2 GB a day)" in result.stdout


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"gone": 0, "gone_of_day": 0, "ended": 0}, None),
        (
            {"gone": 0, "gone_of_day": 0, "ended": 1},
            "0 gone, 1 ended otherwise (fanfare subs list --state over)",
        ),
    ],
)
def test_subscriptions_that_are_over_are_counted_if_there_are_any(
    fanfare: Fanfare, api: FakeApi, ended: dict[str, int], said: str | None
) -> None:
    api.answers["GET /api/health"] = (200, {**health(), "ended_subscriptions": ended})
    lines = fanfare("health").stdout.splitlines()
    found = [line for line in lines if line.startswith("over ")]
    assert found == ([] if said is None else [f"over           {said}"])


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            (),
            [
                "FANFARE_PORT --port 81",
                "FANFARE_TOKEN FANFARE_TOKEN (set)",
                "FANFARE_HOST default 127.0.0.1",
                "FANFARE_CONTACT default none",
            ],
        ),
        (
            ("--given",),
            ["FANFARE_PORT --port 81", "FANFARE_TOKEN FANFARE_TOKEN (set)"],
        ),
    ],
)
def test_settings_are_told_with_what_gave_each(
    fanfare: Fanfare, api: FakeApi, arguments: tuple[str, ...], lines: list[str]
) -> None:
    settings = [
        {"name": name, "source": source, "value": value, "secret": is_secret}
        for name, source, value, is_secret in (
            ("FANFARE_PORT", "--port", "81", False),
            ("FANFARE_TOKEN", "FANFARE_TOKEN", "", True),
            ("FANFARE_HOST", "default", "127.0.0.1", False),
            ("FANFARE_CONTACT", "default", "", False),
        )
    ]
    api.answers["GET /api/settings"] = (200, {"settings": settings})
    told = fanfare("settings", *arguments).stdout.splitlines()
    assert [" ".join(line.split()) for line in told[1:]] == lines
    document = json.loads(fanfare("settings", *arguments, "--json").stdout)
    assert len(document["settings"]) == len(lines)


def test_what_waits_is_told_with_the_command_that_lists_it(
    fanfare: Fanfare, api: FakeApi
) -> None:
    document = health()
    soon, before = "2126-01-01T12:00:00Z", "2026-01-01T12:00:00Z"
    waiting = {"fanouts": 1, "chunks": 2, "retrying": 3, "dead_letters": 1}
    times = {"oldest_due": soon, "oldest_undelivered": before}
    document["backlog"] |= {**waiting, **times}
    api.answers["GET /api/health"] = (200, document)
    shown = fanfare("health").stdout
    assert "next poll      due 2126-01-01 12:00:00Z (in " in shown
    assert "1 record, and 2 chunks of up to 500 deliveries, the oldest found" in shown
    assert "retrying       3 subscriptions (fanfare deliveries list)\n" in shown
    assert "given up       1 dead letter (fanfare deliveries list)\n" in shown


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ({"state": "complete", "days": None, "share": 1.0}, "all entries\n"),
        ({"state": "complete", "days": 7.0, "share": 1.0}, "entries of the last 7 d"),
        (
            {"state": "building", "days": None, "share": 0.999},
            "all entries; the index is being built, 99 % done\n",
        ),
        ({"state": "off", "days": 0.0, "share": 0.0}, "off (FANFARE_SEARCH_DAYS=0)\n"),
    ],
)
def test_health_says_what_can_be_searched(
    fanfare: Fanfare, api: FakeApi, search: dict[str, Any], words: str
) -> None:
    api.answers["GET /api/health"] = (200, health(search=search))
    assert f"search         {words}" in fanfare("health").stdout


def condition(
    what: str, *, error: bool, advice: str = "", over: bool = False
) -> dict[str, Any]:
    since = "2026-01-01T12:00:00Z"
    return {
        "what": what,
        "since": since,
        "advice": advice,
        "error": error,
        "over": over,
    }


def test_a_hub_that_is_not_ready_is_exit_code_1_and_says_why(
    fanfare: Fanfare, api: FakeApi
) -> None:
    found = condition("the disk is full", error=True, advice="free some space")
    api.answers["GET /api/health"] = (200, health(ready=False, conditions=[found]))
    result = fanfare("health", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ready"] is False
    first, since, advice, last = result.stderr.splitlines()
    assert first == "not ready: the disk is full"
    assert since.startswith("  since 2026-01-01 12:00:00Z (")
    assert advice == "  what to do: free some space"
    assert last == "fanfare: the hub is not ready"


def test_what_an_operator_should_look_at_is_told_of_a_hub_that_works(
    fanfare: Fanfare, api: FakeApi
) -> None:
    found = condition("the clock went back", error=False)
    past = condition("a write failed", error=False, over=True)
    api.answers["GET /api/health"] = (200, health(conditions=[found, past]))
    result = fanfare("health")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: the clock went back\n  since 2026-01-01")
    assert "what to do" not in result.stderr
    assert [
        line.endswith(", and over by now") for line in result.stderr.splitlines()
    ] == [False, False, False, True]


def test_the_version_is_printed_without_a_hub(alone: Fanfare) -> None:
    assert alone("version").stdout == f"fanfare {hub.__version__}\n"


RETRY = "POST /api/deliveries/retry"
RETRYING: dict[str, Any] = {
    "subscription": 4,
    "attempts": 2,
    "next_try": "2026-01-01T12:05:00Z",
    "under_way": False,
    "paused": False,
    "last_error": "answered 503",
    "last_status": 503,
    "callback": "https://you.example/hook",
}
DEAD_LETTER: dict[str, Any] = {
    "id": 1,
    "subscription": 4,
    "first": 3,
    "last": 9,
    "at": "2026-01-01T12:00:00Z",
    "reason": "gave up",
    "callback": "https://you.example/hook",
    "entries": 12,
    "titles": ["First", "Second"],
    "has_more": True,
}


def test_the_list_has_what_is_late_and_what_was_given_up(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/deliveries"] = (
        200,
        {"retrying": [RETRYING], "dead_letters": [DEAD_LETTER]},
    )
    result = fanfare("deliveries", "list")
    lines = result.stdout
    assert "503" in lines
    assert "2026-01-01 12:05:00Z" in lines
    assert ", maybe sooner with a new record " in lines
    assert "because of a new record, does not count" in result.stderr
    assert "3-9" in lines
    assert "12 or more entries: First, Second, …" in lines
    as_json = json.loads(fanfare("deliveries", "list", "--json").stdout)
    assert as_json["dead_letters"] == [DEAD_LETTER]


def test_a_retrying_subscription_has_no_next_try_while_it_is_tried_or_paused(
    fanfare: Fanfare, api: FakeApi
) -> None:
    late = {**RETRYING, "under_way": True}
    api.answers["GET /api/deliveries"] = (200, {"retrying": [late], "dead_letters": []})
    lines = fanfare("deliveries", "list").stdout
    assert "being tried" in lines
    assert "12:05:00Z" not in lines
    late = {**RETRYING, "paused": True, "last_error": ""}
    api.answers["GET /api/deliveries"] = (200, {"retrying": [late], "dead_letters": []})
    lines = fanfare("deliveries", "list").stdout
    assert "when it is resumed" in lines
    assert "catching up" in lines


def test_an_empty_list_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/deliveries"] = (200, {"retrying": [], "dead_letters": []})
    expected = "no retrying subscriptions and no dead letters\n"
    assert fanfare("deliveries", "list").stdout == expected


@pytest.mark.parametrize(
    ("option", "member"),
    [
        ("--subscription", "subscription"),
        ("--dead-letter", "dead_letter"),
    ],
)
def test_retry_names_what_is_tried(
    fanfare: Fanfare, api: FakeApi, option: str, member: str
) -> None:
    api.answers[RETRY] = (202, {"due": "now"})
    assert fanfare("deliveries", "retry", option, "4").exit_code == 0
    assert api.requests == [(RETRY, {member: 4})]


@pytest.mark.parametrize("options", [[], ["--dead-letter", "1", "--subscription", "2"]])
def test_retry_takes_one_of_the_two(fanfare: Fanfare, options: list[str]) -> None:
    assert fanfare("deliveries", "retry", *options).exit_code == 2


BUILD = "POST /api/scp/build"
BUILT = {
    "name": "all-delta-20260101T000000Z-abc.scp.gz",
    "section": "all",
    "type": "delta",
    "generated": "2026-01-01T00:00:00Z",
    "since": "2025-12-31T23:00:00Z",
    "expires": "2026-01-03T00:00:00Z",
    "pages": 7,
    "size": 1234,
}


def test_what_was_built_is_listed(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[BUILD] = (201, {"collections": [BUILT]})
    lines = fanfare("scp", "build").stdout
    assert "1234" in lines
    assert BUILT["name"] in lines
    assert api.requests == [(BUILD, {"snapshots": False})]


def test_snapshots_can_be_asked_for_and_the_answer_be_json(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[BUILD] = (201, {"collections": [BUILT]})
    done = fanfare("scp", "build", "--snapshots", "--json")
    assert json.loads(done.stdout) == {"collections": [BUILT]}
    assert api.requests == [(BUILD, {"snapshots": True})]


def test_a_terminal_shows_how_many_pages_are_written(
    monkeypatch: pytest.MonkeyPatch, api: FakeApi
) -> None:
    looks, is_shown = count(1), Event()

    def look(_body: object) -> object:
        if next(looks) > 1:  # what was seen before is shown by now
            is_shown.set()
        return {"pages_written": 120_000}

    def built(_body: object) -> object:
        assert is_shown.wait(60)
        return {"collections": []}

    api.answers[BUILD] = (201, built)
    api.answers["GET /api/scp/build"] = (200, look)
    monkeypatch.setenv("FANFARE_PUBLIC_URL", api.url)
    monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "token")
    code, shown = run_in_terminal("scp", "build")
    assert (code, "building collections: 120,000 pages, " in shown) == (0, True)


def test_nothing_to_build_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[BUILD] = (201, {"collections": []})
    assert fanfare("scp", "build").stdout == "nothing has changed\n"


SLOW = {
    "subscription": 7,
    "topic": "https://a.example/feed",
    "callback": "https://you.example/hook",
    "requests": 16,
    "failed": 2,
    "median_milliseconds": 4_000,
    "slowest_milliseconds": 9_000,
    "last": "2026-01-01T12:00:00Z",
}


@pytest.mark.parametrize(
    ("since", "known"),
    [
        ("2026-01-01T11:00:00Z", "since 2026-01-01 11:00:00Z"),
        (None, "that are kept"),
    ],
)
def test_the_slowest_callbacks_say_by_which_requests(
    fanfare: Fanfare, api: FakeApi, since: str | None, known: str
) -> None:
    found = {"callbacks": [SLOW], "since": since}
    api.answers["GET /api/deliveries/slowest"] = (200, found)
    result = fanfare("deliveries", "slowest")
    assert "4000" in result.stdout
    assert result.stderr.startswith(f"by the last 16 requests of each {known}")
    api.answers["GET /api/deliveries/slowest"] = (
        200,
        {"callbacks": [], "since": since},
    )
    nothing = fanfare("deliveries", "slowest").stdout
    assert nothing.startswith("no callback took 100 ms for any of its last 16")
    assert f" requests {known}" in nothing


# --- other people's hubs ---


def push_hub(hub: str, used: bool = True, **counts: int) -> dict[str, object]:
    names = ("brought", "missed", "late", "confirmed", "requested", "delivered")
    return {"hub": hub, "used": used, "counts": {**dict.fromkeys(names, 0), **counts}}


def test_hubs_are_listed_with_what_they_brought_and_their_sums(
    fanfare: Fanfare, api: FakeApi
) -> None:
    good = {"brought": 3, "missed": 1, "late": 2, "confirmed": 2, "requested": 2}
    hubs = [
        push_hub("", **good, delivered=4),
        push_hub("https://good.example/", **good, delivered=4),
        push_hub("https://bad.example/", used=False),
    ]
    api.answers["GET /api/hubs"] = (200, {"hubs": hubs})
    said = [" ".join(each.split()) for each in fanfare("hubs").stdout.splitlines()]
    assert said == [
        "HUB USED BROUGHT FIRST LATE CONFIRMED PUSHES",
        "https://good.example/ yes 75 % of 4 2 2 of 2 4",
        "https://bad.example/ no - 0 0 of 0 0",
        "all hubs - 75 % of 4 2 2 of 2 4",
    ]


@pytest.mark.parametrize("hubs", [[], [push_hub("")]])
def test_without_other_hubs_it_is_said(
    fanfare: Fanfare, api: FakeApi, hubs: list[dict[str, object]]
) -> None:
    api.answers["GET /api/hubs"] = (200, {"hubs": hubs})
    assert fanfare("hubs").stderr == "no feed has been pushed by another hub yet\n"
