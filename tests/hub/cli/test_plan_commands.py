"""Commands that take a filter: how many, which, yes, and how far it is."""

from __future__ import annotations

import json
import signal
from _thread import interrupt_main
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi
from tests.support.terminal import run_in_terminal

Fanfare = Callable[..., Result]
FILTER = {
    "state": ["failing", "gone"],
    "category": "news",
    "search": None,
    "status": None,
}
FEED = {"id": 7, "name": "https://a.example/feed", "note": "failing: answered 500"}
LAST = {"id": 9, "name": "https://b.example/feed", "note": "ok"}


def plan(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": 3,
        "action": "pause",
        "kind": "feeds",
        "filter": FILTER,
        "category": None,
        "count": 12,
        "sample": [FEED, LAST],
        "made_by": "operator",
        "state": "planned",
        "created_at": "2026-01-01T12:00:00Z",
        "expires_at": "2026-01-01T13:00:00Z",
        "confirmed_at": None,
        "finished_at": None,
        "done": 0,
        "failed": 0,
        "left_out": None,
        "failures": [],
    }
    return {**document, **changes}


def done(**changes: Any) -> dict[str, Any]:
    when = "2026-01-01T12:01:00Z"
    return plan(
        **{
            "state": "done",
            "confirmed_at": when,
            "finished_at": when,
            "done": 12,
            "left_out": 0,
            **changes,
        }
    )


def prepare(api: FakeApi, *, end: dict[str, Any] | None = None, **planned: Any) -> None:
    """A hub that plans, and is half through when it is asked first."""
    end = end or done()
    half = plan(state="running", done=6)
    looks = iter([half, half])
    api.answers["POST /api/plans"] = (201, plan(**planned))
    api.answers["POST /api/plans/3/confirm"] = (200, plan(state="running"))
    api.answers["POST /api/plans/3/cancel"] = (200, plan(state="cancelled", **planned))
    api.answers["GET /api/plans/3"] = (200, lambda _: next(looks, end))


def asked(api: FakeApi) -> list[str]:
    return [request for request, _ in api.requests]


# --- what is planned ---


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ("feeds pause --failing", {"action": "pause", "feeds": {"failing": True}}),
        (
            "feeds fetch --host a.example --format rss",
            {"action": "fetch", "feeds": {"host": "a.example", "format": "rss"}},
        ),
        (
            "feeds resume --state paused --state gone",
            {"action": "resume", "feeds": {"state": ["paused", "gone"]}},
        ),
        (
            "feeds remove --category x --since 7d",
            {"action": "remove", "feeds": {"category": "x", "since": "7d"}},
        ),
        ("feeds fetch --all", {"action": "fetch", "feeds": {}}),
        (
            "feeds edit --in-category a --search blog --category b",
            {
                "action": "set_category",
                "category": "b",
                "feeds": {"category": "a", "search": "blog"},
            },
        ),
        (
            "subs remove --failing --account alice",
            {
                "action": "remove",
                "subscriptions": {"failing": True, "account": "alice"},
            },
        ),
        (
            "subs pause --topic https://a.example/",
            {"action": "pause", "subscriptions": {"topic": "https://a.example/"}},
        ),
        (
            "subs resume --state paused",
            {"action": "resume", "subscriptions": {"state": ["paused"]}},
        ),
        (
            "subs retry --failing",
            {"action": "retry", "subscriptions": {"failing": True}},
        ),
        (
            "deliveries retry --status 5xx --host a.example --outcome retried",
            {
                "action": "retry",
                "deliveries": {
                    "status": "5xx",
                    "host": "a.example",
                    "outcome": "retried",
                },
            },
        ),
        (
            "deliveries discard --since 2026-01-01",
            {
                "action": "discard",
                "deliveries": {"since": "2026-01-01T00:00:00+00:00"},
            },
        ),
    ],
)
def test_a_filter_in_the_place_of_ids_makes_a_plan(
    fanfare: Fanfare, api: FakeApi, arguments: str, body: dict[str, Any]
) -> None:
    prepare(api)
    result = fanfare(*arguments.split())
    assert result.exit_code == 0, result.output
    assert api.requests == [("POST /api/plans", body)]
    assert "fanfare plans confirm 3" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("feeds pause", "name feeds, or give a filter"),
        ("feeds pause 7 --failing", "not both"),
        ("feeds remove 7 --all", "not both"),
        ("feeds edit --failing --private", "a filter can only set"),
        ("feeds edit --category x", "name feeds, or give"),
        ("subs remove", "name subscriptions"),
        ("subs pause 7 --failing", "not both"),
        ("deliveries retry", "name deliveries"),
        ("deliveries retry --dead-letter 1 --status 5xx", "not both"),
        ("deliveries discard --dead-letter 1 --subscription 1", "give either"),
    ],
)
def test_it_is_ids_or_a_filter(
    fanfare: Fanfare, api: FakeApi, arguments: str, words: str
) -> None:
    result = fanfare(*arguments.split())
    assert (result.exit_code, api.requests) == (2, [])
    assert words in result.stderr


@pytest.mark.parametrize("option", ["subscription", "dead_letter"])
def test_one_delivery_is_discarded(fanfare: Fanfare, api: FakeApi, option: str) -> None:
    api.answers["POST /api/deliveries/discard"] = (200, {"discarded": True})
    named = f"--{option.replace('_', '-')}"
    result = fanfare("deliveries", "discard", named, "4")
    assert (result.exit_code, result.stdout) == (0, "discarded\n")
    assert api.requests == [("POST /api/deliveries/discard", {option: 4})]


# --- confirming ---


def test_without_a_terminal_the_plan_waits_for_its_confirmation(
    fanfare: Fanfare, api: FakeApi
) -> None:
    prepare(api)
    result = fanfare("feeds", "pause", "--failing")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "plan 3: pause 12 feeds",
        "ID  STATE                  WHICH",
        "7   failing: answered 500  https://a.example/feed",
        "9   ok                     https://b.example/feed",
        "and 10 more",
        "nothing is done yet; within 1 h: fanfare plans confirm 3",
    ]


def test_a_script_says_yes_beforehand(fanfare: Fanfare, api: FakeApi) -> None:
    prepare(api)
    result = fanfare("feeds", "pause", "--failing", "--yes")
    assert result.exit_code == 0
    assert result.stdout.endswith("and 10 more\nplan 3 is done: 12 of 12 feeds\n")
    assert asked(api)[1:3] == ["POST /api/plans/3/confirm", "GET /api/plans/3"]


@pytest.mark.parametrize(("typed", "ends"), [("yes\n", "done"), ("y\n", "cancelled")])
def test_who_sits_at_a_terminal_is_asked(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, typed: str, ends: str
) -> None:
    prepare(api)
    monkeypatch.setenv("FANFARE_PUBLIC_URL", api.url)
    monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "token")
    code, shown = run_in_terminal("feeds", "pause", "--failing", typed=typed)
    assert code == 0
    assert "Type yes to pause 12 feeds: " in shown
    if ends == "done":
        assert "[##########..........] 6 of 12 feeds, 0 failed" in shown
        assert "plan 3 is done: 12 of 12 feeds" in shown
    else:
        assert shown.endswith("nothing is done\n")
        assert asked(api)[-1] == "POST /api/plans/3/cancel"


def test_programs_get_the_plan_and_confirm_it_themselves(
    fanfare: Fanfare, api: FakeApi
) -> None:
    prepare(api)
    planned = fanfare("feeds", "pause", "--failing", "--json")
    assert json.loads(planned.stdout) == plan()
    confirmed = fanfare("plans", "confirm", "3", "--json")
    assert json.loads(confirmed.stdout) == done()
    both = fanfare("feeds", "pause", "--failing", "--json", "--yes")
    assert json.loads(both.stdout) == done()


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_a_filter_that_finds_nothing_leaves_no_plan(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...]
) -> None:
    prepare(api, count=0, sample=[])
    result = fanfare("feeds", "pause", "--failing", *options)
    assert (result.exit_code, result.stdout) == (0, "no such feeds\n")
    assert asked(api) == ["POST /api/plans", "POST /api/plans/3/cancel"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "subscriptions", "undelivered": 2}, "2 failing or slow now"),
        ({"kind": "deliveries", "undelivered": 0}, "0 not accepted now"),
        (
            {"kind": "deliveries", "undelivered": 1_000, "more_undelivered": True},
            "1,000 or more not accepted now",
        ),
    ],
)
def test_done_means_made_due_where_something_is_sent_again(
    fanfare: Fanfare, api: FakeApi, changes: dict[str, Any], said: str
) -> None:
    api.answers["GET /api/plans/3"] = (200, done(action="retry", **changes))
    shown = fanfare("plans", "show", "3").stdout
    assert (
        f"done means made due: of what the filter finds in any state, {said}" in shown
    )


def test_what_is_not_accepted_may_be_no_longer_known(
    fanfare: Fanfare, api: FakeApi
) -> None:
    unknown = {"undelivered": None, "more_undelivered": True}
    found = done(action="retry", kind="deliveries", **unknown)
    api.answers["GET /api/plans/3"] = (200, found)
    assert "what is not accepted now is no longer known" in (
        fanfare("plans", "show", "3").stdout
    )


def test_failures_are_shown_and_are_exit_code_1(fanfare: Fanfare, api: FakeApi) -> None:
    failure = {**FEED, "note": "answered 404"}
    end = done(done=9, failed=2, left_out=1, failures=[failure])
    prepare(api, end=end)
    result = fanfare("feeds", "fetch", "--failing", "--yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-3:] == [
        "plan 3 is done: 9 of 12 feeds, 2 failed, 1 left out, no longer as they were",
        "ID  STATE         WHICH",
        "7   answered 404  https://a.example/feed",
    ]
    assert result.stderr.endswith("fanfare: 2 of 12 feeds failed\n")


def test_who_stops_waiting_leaves_the_hub_at_work(
    fanfare: Fanfare, api: FakeApi
) -> None:
    def interrupt(_: object) -> dict[str, Any]:
        interrupt_main()
        return plan(state="running")

    prepare(api)
    api.answers["GET /api/plans/3"] = (200, interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = fanfare("plans", "confirm", "3")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 1
    assert "the hub goes on; fanfare plans show 3, or cancel 3" in result.stderr
    assert asked(api)[-1] == "GET /api/plans/3"


def test_a_plan_that_cannot_be_confirmed_says_why(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["POST /api/plans/3/confirm"] = (409, {"detail": "was confirmed"})
    result = fanfare("plans", "confirm", "3")
    assert (result.exit_code, result.stderr) == (1, "fanfare: was confirmed\n")


# --- plans ---


def test_plans_are_listed_the_latest_first(fanfare: Fanfare, api: FakeApi) -> None:
    category = plan(id=4, action="set_category", category="news", count=1)
    none = plan(id=5, action="set_category", category="", kind="deliveries", count=1)
    listed = {"plans": [plan(), category, none], "next": None}
    api.answers["GET /api/plans"] = (200, listed)
    lines = fanfare("plans", "list").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "PLAN", "DONE", "FAILED", "BY", "MADE"]
    assert lines[1].startswith("5   planned  set the category of 1 dead letter or")
    assert lines[2].startswith("4   planned  set the category of 1 feed to news")
    assert lines[3].startswith("3   planned  pause 12 feeds")
    as_json = json.loads(fanfare("plans", "list", "--json").stdout)
    assert [each["id"] for each in as_json] == [5, 4, 3]


def test_without_plans_it_is_said_how_to_make_one(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/plans"] = (200, {"plans": [], "next": None})
    assert "feeds pause --failing" in fanfare("plans", "list").stdout


def test_a_plan_is_shown_with_what_it_is_for(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/plans/3"] = (200, plan())
    shown = fanfare("plans", "show", "3").stdout
    assert "which  state failing, gone; category news\n" in shown
    assert "until  2026-01-01 13:00:00Z" in shown
    assert "progress" not in shown
    assert shown.endswith("9   ok                     https://b.example/feed\n")

    every = done(filter={"state": None}, failures=[{**FEED, "note": "answered 404"}])
    api.answers["GET /api/plans/3"] = (200, every)
    shown = fanfare("plans", "show", "3").stdout
    assert "which     all\n" in shown
    assert "progress  12 of 12 feeds\n" in shown
    assert shown.endswith("7   answered 404  https://a.example/feed\n")


def test_a_plan_is_cancelled(fanfare: Fanfare, api: FakeApi) -> None:
    cancelled = plan(state="cancelled", done=6)
    api.answers["POST /api/plans/3/cancel"] = (200, cancelled)
    result = fanfare("plans", "cancel", "3")
    assert result.stdout == "plan 3 is cancelled: 6 of 12 feeds\n"
    assert json.loads(fanfare("plans", "cancel", "3", "--json").stdout) == cancelled
