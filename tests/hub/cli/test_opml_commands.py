from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
EXPORT = "GET /myPublicFeeds.opml"


def test_the_public_feeds_are_printed(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[EXPORT] = (200, b"<opml/>\n")
    assert fanfare("opml", "export").stdout == "<opml/>\n"


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (("--all",), ""),
        (("--failing", "--category", "a b"), "failing=true&category=a+b"),
    ],
)
def test_feeds_are_exported_by_a_filter(
    fanfare: Fanfare, api: FakeApi, options: tuple[str, ...], query: str
) -> None:
    api.answers["GET /api/feeds.opml"] = (200, b"<opml/>\n")
    assert fanfare("opml", "export", *options).stdout == "<opml/>\n"
    [(request, _)] = api.requests
    assert request == f"GET /api/feeds.opml{'?' if query else ''}{query}"


def test_or_written_to_a_file(fanfare: Fanfare, api: FakeApi, tmp_path: Path) -> None:
    api.answers[EXPORT] = (200, b"<opml/>\n")
    target = tmp_path / "feeds.opml"
    done = fanfare("opml", "export", "--output", str(target))
    assert done.exit_code == 0
    assert target.read_bytes() == b"<opml/>\n"


def test_a_file_that_cannot_be_written_is_a_failure(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[EXPORT] = (200, b"<opml/>\n")
    done = fanfare("opml", "export", "--output", str(tmp_path / "no" / "feeds.opml"))
    assert done.exit_code == 1
    assert "cannot write" in done.stderr


def test_a_refusal_is_told(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[EXPORT] = (429, {"detail": "too many requests"})
    done = fanfare("opml", "export")
    assert done.exit_code == 1
    assert "too many requests" in done.stderr


@pytest.mark.parametrize("is_written", [True, False])
def test_programs_get_the_feeds_of_the_list(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path, is_written: bool
) -> None:
    document = (
        b'<opml><body><outline text="News"><outline xmlUrl="https://a.example/feed"/>'
        b"</outline></body></opml>"
    )
    api.answers[EXPORT] = (200, document)
    file = tmp_path / "feeds.opml"
    options = ["--output", str(file)] if is_written else []
    printed = json.loads(fanfare("opml", "export", "--json", *options).stdout)
    assert printed["file"] == (str(file) if is_written else None)
    assert [each["category"] for each in printed["feeds"]] == ["News"]
    assert not is_written or file.read_bytes() == document


def test_without_a_hub_the_exit_code_is_3(alone: Fanfare) -> None:
    done = alone("opml", "export", FANFARE_ADMIN_TOKEN="t")
    assert done.exit_code == 3


A, B = "https://a.example/feed", "https://b.example/feed"
LIST = "https://site.example/list.opml"


def listed(url: str, category: str = "", **more: str) -> dict[str, str]:
    return {"url": url, "title": "", "description": "", "category": category, **more}


def a_listing(
    *feeds: dict[str, str], error: str = "", notes: tuple[str, ...] = ()
) -> tuple[int, dict[str, object]]:
    lists = [{"url": LIST, "feeds": len(feeds), "error": error}]
    listing = {"feeds": feeds, "lists": lists, "notes": notes}
    return 200, {**listing, "total": len(feeds), "next": None}


def posted(api: FakeApi) -> list[dict[str, Any]]:
    return [body for where, body in api.requests if where == "POST /api/imports?wait=0"]


def imported(outcome: str, reason: str = "") -> Callable[[Any], object]:
    """The answer to a part, in which all feeds have one outcome."""

    def answer(asked: Any) -> object:
        names = [each["url"] for each in asked["feeds"]]
        known = {"outcome": outcome, "reason": reason, "feed": None, "feeds": []}
        return {"feeds": [{"url": each, **known} for each in names]}

    return answer


@pytest.fixture
def hub(api: FakeApi) -> FakeApi:
    """Two feeds in a list, of which the hub knows none."""
    named = listed(A, "News", title="A", description="All")
    api.answers["POST /api/lists"] = a_listing(named, listed(B))
    api.answers["POST /api/imports"] = (200, imported("added"))
    return api


def test_every_feed_of_a_list_is_added_with_a_line(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    result = fanfare("opml", "import", LIST, "--category", "Others", "--private")

    assert result.exit_code == 0
    assert f"added  {A}  [News]\n" in result.stdout
    assert f"added  {B}  [Others]\n" in result.stdout
    assert "2 added, of 2 feeds\n" in result.stdout
    feeds = [listed(A, "News", title="A", description="All"), listed(B, "Others")]
    shared = {"private": True, "dry_run": False, "keeps_known": True}
    assert posted(hub) == [{"feeds": feeds, **shared}]


def test_names_and_descriptions_of_a_list_are_given_to_new_feeds(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path
) -> None:
    path = tmp_path / "list.opml"
    path.write_text(
        f'<opml><body><outline text="Mine" description="All of it" xmlUrl="{A}"/>'
        f'<outline xmlUrl="{B}"/></body></opml>'
    )
    assert fanfare("opml", "import", str(path)).exit_code == 0
    (asked,) = posted(hub)
    named = listed(A, title="Mine", description="All of it")
    assert asked["feeds"] == [named, listed(B)]


def test_programs_are_told_what_became_of_each_feed(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    hub.answers["POST /api/imports"] = (200, imported("refused", "url: expected"))
    list_ = f'<opml><body><outline xmlUrl="{A}"/></body></opml>'
    result = fanfare("opml", "import", "-", "--json", input=list_.encode())
    assert result.exit_code == 1
    outcome = {"outcome": "refused", "reason": "url: expected"}
    assert json.loads(result.stdout) == {
        "feeds": [{"id": None, "url": A, "category": "", "section": "", **outcome}],
        "lists": [],
        "notes": [],
    }


def test_a_feed_that_is_there_stays_as_it_is(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/imports"] = (200, imported("known"))

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 0
    assert f"already there  {A}" in result.stdout
    assert "2 already there, of 2 feeds\n" in result.stdout


MANY = [f"https://many.example/{number}" for number in range(10_000)]


def test_a_list_of_any_length_is_added_part_by_part(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "many.opml"
    outlines = "".join(f'<outline xmlUrl="{each}"/>' for each in MANY)
    file.write_text(f"<opml><body>{outlines}</body></opml>")

    result = fanfare("opml", "import", str(file))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        *(f"added  {each}" for each in MANY),
        "10,000 added, of 10,000 feeds",
    ]
    sizes = [len(each["feeds"]) for each in posted(hub)]
    assert sizes == [250] * 40


def test_a_list_that_the_hub_reads_comes_in_parts_too(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    def part(asked: Any) -> object:
        skip = asked.get("skip", 0)
        _, listing = a_listing(*map(listed, MANY[skip : skip + 5_000]))
        return {**listing, "next": 5_000 if not skip else None}

    hub.answers["POST /api/lists"] = (200, part)

    result = fanfare("opml", "import", LIST)

    assert "10,000 added, of 10,000 feeds" in result.stdout
    lists = [body for where, body in hub.requests if where == "POST /api/lists"]
    assert lists == [{"urls": [LIST]}, {"urls": [LIST], "skip": 5_000}]


def test_a_part_is_no_larger_than_a_request_may_be(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    long = [f"https://many.example/{number}/{'x' * 10_000}" for number in range(60)]
    hub.answers["POST /api/lists"] = a_listing(*map(listed, long))

    assert fanfare("opml", "import", LIST).exit_code == 0
    assert sorted(len(each["feeds"]) for each in posted(hub)) == [8, 26, 26]


def test_an_import_that_is_cut_off_says_how_far_it_came(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    hub.answers["POST /api/lists"] = a_listing(*map(listed, MANY[:1_000]))

    def die(asked: Any) -> object:
        is_last = asked["feeds"][0]["url"] == MANY[750]
        return b"" if is_last else imported("added")(asked)

    hub.answers["POST /api/imports"] = (200, die)

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert "750 of 1,000 feeds were done" in result.stderr
    assert "repeat the command to continue" in result.stderr
    assert result.stdout.count("added  ") == 750


def test_a_dry_run_adds_nothing(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/imports"] = (200, imported("addable"))

    result = fanfare("opml", "import", LIST, "--dry-run")

    assert result.exit_code == 0
    assert f"would be added  {A}  [News]\n" in result.stdout
    assert "2 would be added, of 2 feeds\n" in result.stdout
    assert [each["dry_run"] for each in posted(hub)] == [True]


def test_why_a_feed_is_not_added_is_in_its_line(fanfare: Fanfare, hub: FakeApi) -> None:
    refused = imported("refused", "url: a private address")
    hub.answers["POST /api/imports"] = (200, refused)

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert f"not added  {A}  [News]: url: a private address" in result.stdout
    assert "2 not added" in result.stdout
    assert "some feeds or lists could not be imported" in result.stderr


def test_a_list_that_cannot_be_read_is_named(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/lists"] = a_listing(
        listed(A), error="answered 404", notes=("only so many",)
    )

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert f"not read  {LIST}: answered 404" in result.stderr
    assert "note  only so many" in result.stderr


def test_a_list_without_feeds_is_a_failure(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/lists"] = a_listing(error="answered 500")

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert "the list has no feeds" in result.stderr
    assert "answered 500" in result.stderr


def test_a_file_is_read_here_and_what_it_includes_by_the_hub(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "mine.opml"
    file.write_text(
        f'<opml><body><outline text="Own" xmlUrl="{A}"/>'
        f'<outline type="include" url="{LIST}"/></body></opml>'
    )

    result = fanfare("opml", "import", str(file))

    assert result.exit_code == 0
    assert f"added  {A}\n" in result.stdout
    assert f"added  {B}\n" in result.stdout
    assert "2 added" in result.stdout
    assert ("POST /api/lists", {"urls": [LIST], "depth": 1}) in hub.requests


def test_a_file_of_feeds_alone_is_not_shown_to_the_hub(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "mine.opml"
    file.write_text(f'<opml><body><outline xmlUrl="{A}"/></body></opml>')

    assert fanfare("opml", "import", str(file)).exit_code == 0
    assert all(where != "POST /api/lists" for where, _ in hub.requests)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("<rss/>", "this is an XML document whose root is <rss>"),
        (" " * (16 * 1024 * 1024 + 1), "has more than 16777216 bytes"),
    ],
)
def test_a_file_that_is_no_list_is_a_failure(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "mine.opml"
    if content is not None:
        file.write_text(content)

    result = fanfare("opml", "import", str(file))

    assert result.exit_code == 1
    assert words in result.stderr


def test_without_a_hub_nothing_is_imported(alone: Fanfare, tmp_path: Path) -> None:
    assert alone("opml", "import", LIST, "--url", "http://127.0.0.1:9").exit_code == 3


def test_the_list_that_a_site_publishes_is_shown(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    hub.answers["POST /api/lists"] = a_listing(
        listed(A, "News", title="T", description="All of it"), listed(B, title=B)
    )

    result = fanfare("opml", "discover", "site.example/some/page")

    assert result.exit_code == 0
    assert result.stdout == f"{A}  [News]\n  T: All of it\n{B}\n"
    assert hub.requests == [
        ("POST /api/lists", {"urls": ["https://site.example/myPublicFeeds.opml"]})
    ]


def test_a_site_that_publishes_none_is_a_failure(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    hub.answers["POST /api/lists"] = a_listing(error="answered 404 Not Found")

    result = fanfare("opml", "discover", "http://site.example")

    assert result.exit_code == 1
    assert "http://site.example publishes no list of feeds" in result.stderr
    assert "answered 404 Not Found" in result.stderr


def watched(**more: Any) -> dict[str, Any]:
    """As the API has it."""
    read = {"last_read": "2026-11-21T10:00:00Z", "next_read": "2026-11-21T11:00:00Z"}
    counts = {"feeds": 3, "refused": 0, "added": 3, "removed": 0, "kept": 0}
    return {
        "id": 7,
        "url": LIST,
        "category": "news",
        "private": False,
        "created_at": "2026-11-21T10:00:00Z",
        "reading": None,
        "error": "",
        "failures": 0,
        "changed_at": read["last_read"],
        **read,
        **counts,
        **more,
    }


def test_a_list_is_watched_until_the_hub_is_in_step_with_it(
    fanfare: Fanfare, api: FakeApi
) -> None:
    reading = watched(reading={"done": 1, "total": 3}, changed_at=None)
    api.answers["POST /api/watched-lists"] = (201, reading)
    api.answers["GET /api/watched-lists/7"] = (200, watched())

    result = fanfare("opml", "import", LIST, "--watch", "--category", "news")

    assert result.exit_code == 0
    assert f"watched  {LIST}: 3 feeds, 3 added\n" in result.stdout
    assert "read again 2026-11-21 11:00:00Z" in result.stdout
    body = {"url": LIST, "category": "news", "private": False}
    assert api.requests[0] == ("POST /api/watched-lists?wait=1", body)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (watched(error="answered 404", failures=1), "answered 404"),
        (watched(refused=2, changed_at=None), "2 feeds were not added"),
    ],
)
def test_what_is_wrong_with_a_watched_list_is_a_failure(
    fanfare: Fanfare, api: FakeApi, found: dict[str, Any], words: str
) -> None:
    api.answers["POST /api/watched-lists"] = (201, found)

    result = fanfare("opml", "import", LIST, "--watch")

    assert result.exit_code == 1
    assert words in result.stderr
    printed = fanfare("opml", "import", LIST, "--watch", "--json").stdout
    assert json.loads(printed) == found


@pytest.mark.parametrize("arguments", [["-"], [LIST, "--dry-run"]])
def test_only_the_list_at_a_url_can_be_watched(
    fanfare: Fanfare, arguments: list[str]
) -> None:
    result = fanfare("opml", "import", "--watch", *arguments)
    assert result.exit_code == 2
    assert "--watch takes the URL of a list" in result.stderr


def test_watched_lists_are_listed_with_what_came_of_each(
    fanfare: Fanfare, api: FakeApi
) -> None:
    broken = watched(
        id=8, error="answered 404", last_read=None, changed_at=None, reading={}
    )
    lists = [watched(removed=1), broken]
    api.answers["GET /api/watched-lists"] = (200, {"lists": lists, "next": None})

    shown = fanfare("opml", "watches").stdout.splitlines()

    assert shown[0].split()[:3] == ["ID", "URL", "CATEGORY"]
    assert "  3 added, 1 removed  " in shown[1]
    assert "  never  " in shown[2]
    assert "  now  " in shown[2]
    assert shown[2].endswith("answered 404")
    assert json.loads(fanfare("opml", "watches", "--json").stdout) == lists


def test_without_any_it_is_said_how_to_begin(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/watched-lists"] = (200, {"lists": [], "next": None})
    assert "fanfare opml import --watch URL" in fanfare("opml", "watches").stdout


@pytest.mark.parametrize("name", [LIST, "7"])
def test_a_list_is_unwatched_by_its_url_or_id(
    fanfare: Fanfare, api: FakeApi, name: str
) -> None:
    api.answers["GET /api/watched-lists"] = (200, {"lists": [watched()], "next": None})
    api.answers["DELETE /api/watched-lists/7"] = (200, watched())

    result = fanfare("opml", "unwatch", name)

    assert result.stdout == f"no longer watched  {LIST}; its feeds stay\n"
    assert json.loads(fanfare("opml", "unwatch", name, "--json").stdout) == watched()
    unknown = fanfare("opml", "unwatch", "https://other.example/")
    assert unknown.exit_code == 1
    assert "is not watched" in unknown.stderr
