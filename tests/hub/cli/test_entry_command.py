"""The way of an entry on the command line."""

from __future__ import annotations

import json

import pytest

from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi

WAY = {
    "id": 7,
    "guid": "tag:a.example,2026:7",
    "title": "News",
    "revision": 1,
    "deleted": False,
    "feed": 3,
    "feed_title": "A",
    "url": "https://a.example/feed",
    "published": "2026-06-02T12:00:00Z",
    "believed": "2026-06-02T12:00:00Z",
    "pauses": [
        {
            "paused_at": "2026-06-02T11:59:00Z",
            "paused_by": "operator",
            "resumed_at": "2026-06-02T12:05:00Z",
            "resumed_by": None,
        }
    ],
    "poll": {"at": "2026-06-02T12:05:01Z", "reason": "asked_for"},
    "polls_without": 0,
    "last_poll_without": None,
    "records": [{"at": "2026-06-02T12:05:01.25Z", "position": 9, "kind": "entries"}],
    "deliveries": [
        {
            "at": "2026-06-02T12:05:01.5Z",
            "subscription": 1,
            "callback": "https://s.example/1",
            "status": 204,
            "error": "",
            "over_since": "2026-06-02T12:06:00Z",
        },
        {
            "at": "2026-06-02T12:05:02Z",
            "subscription": 2,
            "callback": "https://s.example/2",
            "status": 500,
            "error": "answered 500",
            "over_since": None,
        },
    ],
    "given_up": [
        {
            "at": "2026-06-02T13:00:00Z",
            "subscription": 2,
            "callback": "https://s.example/2",
            "reason": "exhausted",
        }
    ],
    "waiting": [
        {
            "subscription": 4,
            "callback": "https://s.example/4",
            "paused": False,
            "failing_since": "2026-06-02T12:05:02Z",
            "next_try": "2026-06-02T12:15:02Z",
            "under_way": False,
            "last_error": "answered 503",
        }
    ],
    "more_subscribers": True,
    "more_ended": False,
}


def lines(output: str) -> list[str]:
    return [" ".join(each.split()) for each in output.splitlines()]


def test_its_stations_are_told_in_the_order_of_time(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/entries/7"] = (200, WAY)

    result = fanfare("entry", "7")

    told = lines(result.stdout)
    assert told[:3] == ["entry 7", "title News", "feed https://a.example/feed (feed 3)"]
    assert told[told.index("") + 2 :] == [
        "2026-06-02 11:59:00.000Z 0 s paused its feed, by operator",
        "2026-06-02 12:00:00.000Z 0 s published by the date in the feed",
        "2026-06-02 12:05:00.000Z 5 min resumed its feed, by ?",
        "2026-06-02 12:05:01.000Z 5 min 1 s seen by a poll (asked for)",
        "2026-06-02 12:05:01.250Z 5 min 1 s committed record 9 (entries)",
        "2026-06-02 12:05:01.500Z 5 min 2 s delivered"
        " https://s.example/1 (subscription 1), over since 2026-06-02 12:06:00Z:"
        " answered 204",
        "2026-06-02 12:05:02.000Z 5 min 2 s not delivered"
        " https://s.example/2 (subscription 2): answered 500",
        "2026-06-02 13:00:00.000Z 1 h given up"
        " https://s.example/2 (subscription 2): exhausted",
        "waiting: https://s.example/4 (subscription 4): since 2026-06-02 12:05:02Z,"
        " answered 503; next try 2026-06-02 12:15:02Z",
    ]
    assert "there are more subscriptions" in result.stderr


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        ({"paused": True}, "it is paused"),
        ({"under_way": True}, "answered 503; next try under way"),
        (
            {"last_error": ""},
            "catching up; next try 2026-06-02 12:15:02Z",
        ),
    ],
)
def test_who_waits_is_told_with_since_when_and_what_for(
    fanfare: Fanfare, api: FakeApi, waits: dict[str, object], said: str
) -> None:
    (waiting,) = WAY["waiting"]  # type: ignore[misc, attr-defined]
    api.answers["GET /api/entries/7"] = (200, WAY | {"waiting": [waiting | waits]})

    told = lines(fanfare("entry", "7").stdout)[-1]

    assert told.endswith(f": since 2026-06-02 12:05:02Z, {said}")


@pytest.mark.parametrize(("count", "polls"), [(1, "1 poll"), (3, "3 polls")])
def test_what_its_publisher_showed_late_is_said_to_be(
    fanfare: Fanfare, api: FakeApi, count: int, polls: str
) -> None:
    without = {"polls_without": count, "last_poll_without": "2026-06-02T12:04:00Z"}
    api.answers["GET /api/entries/7"] = (200, WAY | without)

    (seen,) = (each for each in lines(fanfare("entry", "7").stdout) if "seen" in each)

    assert seen.endswith(
        f"by a poll (asked for); {polls} in between, the last at 2026-06-02 12:04:00Z,"
        " did not have it: its publisher showed it later"
    )


def test_what_is_not_known_is_left_out(fanfare: Fanfare, api: FakeApi) -> None:
    nothing = {"records": [], "deliveries": [], "given_up": [], "waiting": []}
    of_old = {**WAY, **nothing, "believed": None, "poll": None, "pauses": []}
    api.answers["GET /api/entries/7"] = (200, of_old | {"more_subscribers": False})

    result = fanfare("entry", "7")

    doubt = "published by the date in the feed; not believed"
    assert lines(result.stdout)[-1] == f"2026-06-02 12:00:00.000Z {doubt}"
    assert result.stderr == "the log has no record of it any more\n"
    assert json.loads(fanfare("entry", "7", "--json").stdout) == of_old | {
        "more_subscribers": False
    }
