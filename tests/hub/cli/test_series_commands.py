"""How the hub was over time, and what was committed when, on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi

SINCE = "2026-06-02T12:00:00Z"
POLLS = {
    "name": "polls",
    "what": "polls",
    "unit": "a second",
    "since": SINCE,
    "step": 60,
    "means": [1.0, None, 3.0],
    "lows": [0.0, None, 2.0],
    "highs": [4.0, None, 9.0],
}
MEMORY = {**POLLS, "name": "memory", "unit": "bytes", "means": [None], "highs": [None]}
DELAYS = {
    "name": "commit_to_delivery",
    "since": SINCE,
    "step": 60,
    "bounds": [1.0],
    "counts": [[3, 0], [0, 0], [4, 1]],
    "p50": [0.02, None, 0.04],
    "p99": [0.8, None, None],
}
ENTRY = {
    "id": 7,
    "title": "News",
    "url": "https://a.example/feed",
    "committed_at": SINCE,
    "publication_to_commit": 90.0,
    "commit_to_delivery": 0.5,
    "exact": False,
}


def lines(output: str) -> list[str]:
    return [" ".join(each.split()) for each in output.splitlines()]


def asked(api: FakeApi) -> list[str]:
    return [request.removeprefix("GET ") for request, _ in api.requests]


def test_series_are_summed_up(fanfare: Fanfare, api: FakeApi) -> None:
    starts = ["2026-06-02T12:00:00Z", "2026-06-02T12:01:00Z"]
    found = {"series": [POLLS, MEMORY], "delays": [DELAYS], "starts": starts}
    api.answers["GET /api/series"] = (200, found)
    assert lines(fanfare("series").stdout) == [
        "SERIES LATEST MEAN HIGHEST WHAT",
        "polls 3/s 2/s 9/s polls",
        "memory - - - polls",
        "DELAY ENTRIES LATEST HALF LATEST 99 % SLOWEST 99 %",
        "commit_to_delivery 8 40 ms > 1 s > 1 s",
        "The hub was started 2 times in it, the last at 2026-06-02 12:01:00Z",
    ]
    assert asked(api)[-1] == "/api/series?range=6h"
    assert json.loads(fanfare("series", "--json").stdout) == found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            {"series": [POLLS], "delays": []},
            [
                "FROM MEAN LOWEST HIGHEST",
                "2026-06-02 12:00:00Z 1/s 0/s 4/s",
                "2026-06-02 12:01:00Z - - -",
                "2026-06-02 12:02:00Z 3/s 2/s 9/s",
            ],
        ),
        (
            {"series": [], "delays": [DELAYS]},
            [
                "FROM ENTRIES HALF WITHIN 99 % WITHIN",
                "2026-06-02 12:00:00Z 3 20 ms 800 ms",
                "2026-06-02 12:01:00Z 0 - -",
                "2026-06-02 12:02:00Z 5 40 ms > 1 s",
            ],
        ),
    ],
)
def test_of_a_single_series_every_value_is_told(
    fanfare: Fanfare, api: FakeApi, found: dict[str, Any], expected: list[str]
) -> None:
    api.answers["GET /api/series"] = (200, found)
    arguments = "--name", "polls", "--range", "10min", "--points", "3"
    assert lines(fanfare("series", *arguments).stdout) == expected
    assert asked(api)[-1] == "/api/series?range=10min&name=polls&points=3"


def test_a_range_is_not_given_with_other_ends(fanfare: Fanfare) -> None:
    assert fanfare("series", "--range", "6h", "--since", "2h").exit_code == 2


def test_entries_are_listed_with_their_delays(fanfare: Fanfare, api: FakeApi) -> None:
    unsent = {**ENTRY, "title": "", "commit_to_delivery": None}
    found = {"entries": [ENTRY, unsent], "next": None, "examined": None}
    api.answers["GET /api/entries"] = (200, found)
    result = fanfare("entries", "--since", "2026-06-02T12:00Z")
    assert lines(result.stdout)[1:] == [
        "7 2026-06-02 12:00:00Z 1 min 30 s <= 500 ms News https://a.example/feed",
        "7 2026-06-02 12:00:00Z 1 min 30 s - (untitled) https://a.example/feed",
    ]
    assert "2 entries" in result.stderr
    assert asked(api)[-1] == (
        "/api/entries?since=2026-06-02T12%3A00%3A00%2B00%3A00&limit=100"
    )


def test_entries_are_read_page_by_page_up_to_the_limit(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/entries"] = (
        200,
        {"entries": [ENTRY], "next": "9-1", "examined": None},
    )
    result = fanfare("entries", "--limit", "2", "--order", "latest", "--json")
    assert len(json.loads(result.stdout)["entries"]) == 2
    assert asked(api)[-1] == "/api/entries?order=latest&limit=1&cursor=9-1"
    wanted = "--feed", "7", "--search", "big news"
    assert "there are more" in fanfare("entries", *wanted, "--limit", "1").stderr
    page = {"entries": [ENTRY], "next": "9-1", "examined": None, "reached": SINCE}
    api.answers["GET /api/entries"] = (200, page)
    reach = "; looked as far as 2026-06-02 12:00:00Z, others may match"
    told = fanfare("entries", *wanted, "--limit", "1").stderr
    assert told == f"1 entry{reach}\n"
    assert asked(api)[-1] == "/api/entries?feed=7&search=big+news&limit=1"


@pytest.mark.parametrize(
    ("undated", "has_more", "others_within", "said"),
    [
        (0, False, None, ""),
        (3, False, None, "; 3 without a believable date left out"),
        (0, True, None, "; others were not looked at"),
        (0, True, 120.0, "; the others came within 2 min"),
        (0, True, 0.0, "; no others have a believable date"),
    ],
)
def test_those_by_delay_say_among_how_many(
    fanfare: Fanfare,
    api: FakeApi,
    undated: int,
    has_more: bool,
    others_within: float | None,
    said: str,
) -> None:
    page = {"entries": [ENTRY], "next": None, "examined": 500, "undated": undated}
    bound = {"has_more": has_more, "others_within": others_within}
    api.answers["GET /api/entries"] = (200, page | bound)
    found = fanfare("entries", "--order", "delay").stderr
    assert found == f"1 entry of 500 of that time{said}\n"
