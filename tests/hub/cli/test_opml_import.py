from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.api_documents import feed_document
from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
A, B = "https://a.example/feed", "https://b.example/feed"
LIST = "https://site.example/list.opml"


def listed(url: str, section: str = "", **more: str) -> dict[str, str]:
    return {"url": url, "title": "", "description": "", "section": section, **more}


def a_listing(
    *feeds: dict[str, str], trouble: str = "", notes: tuple[str, ...] = ()
) -> tuple[int, dict[str, object]]:
    lists = [{"url": LIST, "feeds": len(feeds), "trouble": trouble}]
    return 200, {"feeds": feeds, "lists": lists, "notes": notes}


def posted(api: FakeApi) -> list[dict[str, object]]:
    return sorted(
        (body for where, body in api.requests if where == "POST /api/feeds?wait=0"),
        key=lambda body: str(body["url"]),
    )


@pytest.fixture
def hub(api: FakeApi) -> FakeApi:
    """Two feeds in a list, of which the hub knows none."""
    api.answers["POST /api/lists"] = a_listing(listed(A, "News"), listed(B))
    api.answers["GET /api/feeds"] = (200, {"feeds": [], "next": None})
    api.answers["POST /api/feeds"] = (201, feed_document())
    return api


def test_every_feed_of_a_list_is_added_with_a_line(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    result = fanfare("opml", "import", LIST, "--section", "Others", "--private")

    assert result.exit_code == 0
    assert f"added  {A}  [News]\n" in result.stdout
    assert f"added  {B}  [Others]\n" in result.stdout
    assert "2 added\n" in result.stdout
    assert posted(hub) == [
        {"url": A, "section": "News", "private": True},
        {"url": B, "section": "Others", "private": True},
    ]


def test_names_and_descriptions_of_a_list_are_given_to_new_feeds(
    fanfare: Fanfare, hub: FakeApi, tmp_path: Path
) -> None:
    path = tmp_path / "list.opml"
    path.write_text(
        f'<opml><body><outline text="Mine" description="All of it" xmlUrl="{A}"/>'
        f'<outline xmlUrl="{B}"/></body></opml>'
    )
    assert fanfare("opml", "import", str(path)).exit_code == 0
    shared = {"section": "", "private": False}
    assert posted(hub) == [
        {"url": A, "title": "Mine", "description": "All of it", **shared},
        {"url": B, **shared},
    ]


def test_a_feed_that_is_there_stays_as_it_is(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["GET /api/feeds"] = (200, {"feeds": [feed_document()], "next": None})

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 0
    assert f"already there  {A}" in result.stdout
    assert posted(hub) == []


def test_a_feed_that_somebody_added_meanwhile_is_there(
    fanfare: Fanfare, hub: FakeApi
) -> None:
    hub.answers["POST /api/feeds"] = (200, feed_document(added=False))

    assert "2 already there" in fanfare("opml", "import", LIST).stdout


def test_a_dry_run_adds_nothing(fanfare: Fanfare, hub: FakeApi) -> None:
    result = fanfare("opml", "import", LIST, "--dry-run")

    assert result.exit_code == 0
    assert f"would be added  {A}  [News]\n" in result.stdout
    assert "2 would be added\n" in result.stdout
    assert posted(hub) == []


def test_why_a_feed_is_not_added_is_in_its_line(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/feeds"] = (422, {"detail": "url: a private address"})

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert f"not added  {A}  [News]: url: a private address" in result.stdout
    assert "2 not added" in result.stdout
    assert "not all of it could be imported" in result.stderr


def test_a_list_that_cannot_be_read_is_named(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/lists"] = a_listing(
        listed(A), trouble="answered 404", notes=("only so many",)
    )

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert f"not read  {LIST}: answered 404" in result.stderr
    assert "note  only so many" in result.stderr


def test_a_list_without_feeds_is_a_failure(fanfare: Fanfare, hub: FakeApi) -> None:
    hub.answers["POST /api/lists"] = a_listing(trouble="answered 500")

    result = fanfare("opml", "import", LIST)

    assert result.exit_code == 1
    assert "there are no feeds in it" in result.stderr
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
        (None, "cannot be read: No such file or directory"),
        ("<rss/>", "this is an XML document whose root is <rss>"),
        (" " * (2 * 1024 * 1024 + 1), "has more than 2097152 bytes"),
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
    hub.answers["POST /api/lists"] = a_listing(trouble="answered 404 Not Found")

    result = fanfare("opml", "discover", "http://site.example")

    assert result.exit_code == 1
    assert "http://site.example publishes no list of feeds" in result.stderr
    assert "answered 404 Not Found" in result.stderr
