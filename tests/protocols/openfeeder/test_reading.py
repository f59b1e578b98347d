"""What OpenFeeder sites answer, as they should and as they do."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import ParseContext, parse
from protocols.model import FeedFormat
from protocols.openfeeder.read.site_answers import (
    LARGEST_MENDED,
    MOST_CHUNKS,
    ListedChanges,
    ListedIndex,
    cursor_after,
    read_front,
    read_listing,
    read_page,
    time_of,
    token_of,
)
from protocols.openfeeder.read.site_entries import content_of, entry_of, is_of, key_of
from protocols.openfeeder.read.site_urls import (
    ENDPOINT,
    LLMS,
    WELL_KNOWN,
    changes_url,
    discovery_urls,
    index_url,
    page_url,
    urls_in_llms,
)
from protocols.protocol_errors import FeedError, MalformedDocument

SITE = "https://site.example/"
FRONT = f"https://site.example{WELL_KNOWN}"
DEEP = b'{"items":[' + b'{"url":"/a","more":' + b"[" * 300 + b"]" * 300 + b"}]}"


def discovery(**changes: Any) -> dict[str, Any]:
    document = {
        "version": "1.0",
        "site": {"name": " A  site ", "url": SITE, "language": "en"},
        "feed": {"endpoint": "/openfeeder"},
        **changes,
    }
    return {name: value for name, value in document.items() if value is not ...}


def written(document: object) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("changes", "endpoint"),
    [
        ({}, "https://site.example/openfeeder"),
        ({"version": "1.0.2"}, "https://site.example/openfeeder"),
        (
            {"feed": {"endpoint": "https://api.example/of?a=1#x"}},
            "https://api.example/of?a=1",
        ),
        ({"feed": {"endpoint": "of"}}, "https://site.example/.well-known/of"),
    ],
)
def test_a_discovery_document_names_its_endpoint(
    changes: dict[str, Any], endpoint: str
) -> None:
    found = read_front(written(discovery(**changes)), FRONT)

    assert found.endpoint == endpoint
    assert (found.name, found.language, found.site_url) == ("A site", "en", SITE)


def test_a_site_without_an_address_of_its_own_is_where_its_document_is() -> None:
    for url in (None, 5, "ftp://x/", "http://[", ""):
        found = read_front(written(discovery(site={"url": url})), FRONT)
        assert (found.site_url, found.name) == (SITE, "")


def test_an_endpoint_is_a_front_by_itself() -> None:
    index = {"schema": "openfeeder/1.0", "items": []}
    changes = {"openfeeder_version": "1.0", "sync": {}}

    for document in (index, changes):
        found = read_front(written(document), f"{SITE}of?x=1")
        assert (found.endpoint, found.site_url) == (f"{SITE}of?x=1", SITE)


@pytest.mark.parametrize(
    ("document", "trouble"),
    [
        (discovery(version="2.0"), '/version: expected "1.0"'),
        (discovery(site=[]), "/site: expected an object"),
        (discovery(feed="x"), "/feed: expected an object"),
        (discovery(feed={}), "/feed/endpoint: expected a URL"),
        (discovery(feed={"endpoint": " "}), "/feed/endpoint: expected a URL"),
        (
            discovery(feed={"endpoint": "mailto:a@b"}),
            "/feed/endpoint: expected an http or https URL",
        ),
        (
            discovery(feed={"endpoint": "http://["}),
            "/feed/endpoint: expected an http or https URL",
        ),
    ],
)
def test_a_discovery_document_that_is_wrong_says_where(
    document: dict[str, Any], trouble: str
) -> None:
    with pytest.raises(FeedError) as raised:
        read_front(written(document), FRONT)
    assert str(raised.value) == trouble
    with pytest.raises(FeedError) as parsed:
        parse(written(document), ParseContext(url=FRONT, content_type="", now=NOW))
    assert str(parsed.value) == trouble


NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_sites_are_told_from_feeds_by_their_content() -> None:
    context = ParseContext(url=FRONT, content_type="", now=NOW)
    for document in (discovery(), {"schema": "openfeeder/1.0", "items": []}):
        assert parse(written(document), context).format is FeedFormat.OPENFEEDER


def test_an_index_lists_what_can_be_read_and_says_what_cannot() -> None:
    items = [
        {"url": "/a", "title": " A  b ", "published": "2026-05-01T00:00:00Z"},
        "/b",
        {"title": "no address"},
        {"url": "javascript:x"},
        {"url": "https://site.example/d?x=1#y", "updated": None},
    ]

    index = read_listing(written({"items": items, "total_pages": 3}), SITE)

    assert isinstance(index, ListedIndex)
    assert [(each.reference, each.url) for each in index.items] == [
        ("/a", f"{SITE}a"),
        ("https://site.example/d?x=1#y", f"{SITE}d?x=1#y"),
    ]
    assert (index.items[0].title, index.items[0].published) == ("A b", NOW)
    assert (index.total_pages, index.is_whole) == (3, False)
    assert index.problems == (
        "/items/1: expected an object",
        "/items/2/url: expected a URL",
        "/items/3/url: expected a URL",
    )


@pytest.mark.parametrize(
    ("total", "read"), [(True, 0), (-1, 0), ("9", 0), (None, 0), (10**9, 10**6)]
)
def test_the_number_of_pages_is_a_number_or_not_known(total: object, read: int) -> None:
    index = read_listing(written({"items": [], "total_pages": total}), SITE)

    assert isinstance(index, ListedIndex)
    assert index.total_pages == read


def test_an_index_item_is_the_same_in_any_order_of_its_members() -> None:
    one = read_listing(b'{"items":[{"url":"/a","title":"A"}]}', SITE)
    two = read_listing(b'{"items":[{"title":"A","url":"/a"}]}', SITE)
    three = read_listing(b'{"items":[{"title":"B","url":"/a"}]}', SITE)
    deep = read_listing(DEEP, SITE)

    assert one == two != three
    assert isinstance(deep, ListedIndex)
    assert deep.items[0].digest == 0


def test_of_too_many_items_the_first_count_and_the_rest_is_said() -> None:
    items = [{"url": f"/{number}"} for number in range(5_001)]

    index = read_listing(written({"items": items}), SITE)

    assert isinstance(index, ListedIndex)
    assert (len(index.items), index.is_whole) == (5_000, False)


def test_changes_are_those_with_a_sync_and_tombstones_may_be_bare() -> None:
    changes = read_listing(
        written(
            {
                "sync": {"as_of": "2026-05-01T00:00:00Z"},
                "added": [{"url": "/a"}],
                "updated": [{"url": "/a", "title": "A"}, {"url": "/b"}],
                "deleted": [
                    {"url": "/c", "deleted_at": "2026-05-01T00:00:00Z"},
                    "/d",
                    {"at": 1},
                ],
            }
        ),
        SITE,
    )

    assert isinstance(changes, ListedChanges)
    assert [(each.url, each.title) for each in changes.changed] == [
        (f"{SITE}a", "A"),
        (f"{SITE}b", ""),
    ]
    assert [(each.url, each.at) for each in changes.deleted] == [
        (f"{SITE}c", NOW),
        (f"{SITE}d", None),
    ]
    assert changes.cursor == "2026-04-30T23:59:55.000Z"
    assert (changes.tracks_deletions, changes.is_whole) == (True, False)
    assert changes.problems == ("/deleted/2/url: expected a URL",)


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        (b"", "the document is empty"),
        (b"{", "line 1"),
        (b"[]", "the document: expected an object"),
        (b"{}", "/items: expected an array"),
        (b'{"items":{}}', "/items: expected an array"),
        (b'{"sync":{},"added":{}}', "/added: expected an array"),
        (b'{"sync":{},"updated":1}', "/updated: expected an array"),
        (b'{"sync":{},"deleted":null}', "/deleted: expected an array"),
        (b"[" * 2_000, "nested JSON"),
        (b" " * 20_000_001, "size"),
    ],
)
def test_an_answer_that_is_wrong_as_a_whole_says_where(
    body: bytes, trouble: str
) -> None:
    with pytest.raises(FeedError) as raised:
        read_listing(body, SITE)

    assert trouble in str(raised.value)


def test_chunks_become_content_by_their_type() -> None:
    chunks = [
        {"text": "A & <b>", "type": "paragraph"},
        {"text": "Head", "type": "heading"},
        {"text": "- one\n* two\n\n", "type": "list"},
        {"text": "if a < b:", "type": "code"},
        {"text": "said", "type": "quote"},
        {"text": "other", "type": "unheard of"},
        {"text": " "},
        "none",
    ]
    (listed,) = _listed("/a")

    page = read_page(written({"chunks": chunks, "url": "/a"}), SITE)
    entry = entry_of(listed, page, "de")

    assert entry.content is not None
    assert entry.content.value == "\n".join(
        [
            "<p>A &amp; &lt;b&gt;</p>",
            "<h2>Head</h2>",
            "<ul><li>one</li><li>two</li></ul>",
            "<pre><code>if a &lt; b:</code></pre>",
            "<blockquote>said</blockquote>",
            "<p>other</p>",
        ]
    )
    assert (entry.id, entry.language, entry.extensions) == (f"{SITE}a", "de", {})


def test_chunks_that_were_not_sent_are_counted() -> None:
    (listed,) = _listed("/a")
    chunk = {"text": "a", "type": "paragraph"}
    told = {"chunks": [chunk], "meta": {"total_chunks": 12}}
    many = {"chunks": [chunk] * (MOST_CHUNKS + 3), "meta": None}

    for document, missing in ((told, 11), (many, 3)):
        page = read_page(written(document), SITE)
        assert page.missing == missing
        extensions = entry_of(listed, page, "").extensions
        assert extensions == {"openfeeder": {"missing_chunks": missing}}


def test_the_order_of_chunks_is_no_content() -> None:
    (listed,) = _listed("/a")

    def content(*texts: str) -> int:
        chunks = [{"text": text} for text in texts]
        page = read_page(written({"chunks": chunks}), SITE)
        return content_of(entry_of(listed, page, ""), page)

    assert content("a", "b") == content("b", "a") != content("a", "c")
    assert content() == content_of(entry_of(listed, None, ""), None)


@pytest.mark.parametrize(
    ("url", "is_it"),
    [("", True), ("/a/", True), ("http://other.example/a", True), ("/b", False)],
)
def test_a_page_is_known_by_its_path_wherever_it_claims_to_be(
    url: str, is_it: bool
) -> None:
    (listed,) = _listed("/a")
    (queried,) = _listed("/a?p=12")

    page = read_page(written({"chunks": [], "url": url}), SITE)

    assert is_of(page, listed) is is_it
    assert is_of(page, queried) is (not url)


def test_entries_that_are_places_of_one_page_are_told_apart_by_their_fragments() -> (
    None
):
    listed = _listed("/log#one", "/log#two", "/log")
    assert len({key_of(each.url) for each in listed}) == 3
    gone = {"sync": {}, "deleted": [{"url": "/log#one"}]}
    changes = read_listing(written(gone), SITE)
    assert isinstance(changes, ListedChanges)
    assert [each.url for each in changes.deleted] == [listed[0].url]


@pytest.mark.parametrize(
    ("url", "title", "is_it"),
    [
        ("/log#one", "The log", True),
        ("/log#two", "", False),
        ("/log", "One", True),
        ("/log", "", True),
        ("/log", "The log", False),  # all of them
        ("/other#one", "One", False),
    ],
)
def test_a_page_is_that_of_a_fragment_unless_it_calls_itself_another(
    url: str, title: str, is_it: bool
) -> None:
    items = [{"url": "/log#one", "title": "One"}]
    index = read_listing(written({"items": items}), SITE)
    assert isinstance(index, ListedIndex)
    page = read_page(written({"chunks": [], "url": url, "title": title}), SITE)
    assert is_of(page, index.items[0]) is is_it


def test_a_page_without_chunks_is_none() -> None:
    with pytest.raises(FeedError, match="/chunks: expected an array"):
        read_page(b'{"chunks": null}', SITE)


def _listed(*references: str) -> Any:
    items = [{"url": reference} for reference in references]
    listing = read_listing(written({"items": items}), SITE)
    assert isinstance(listing, ListedIndex)
    return listing.items


@pytest.mark.parametrize(
    ("token", "as_of", "cursor"),
    [
        (token_of(NOW), "", token_of(datetime(2026, 4, 30, 23, 59, 55, tzinfo=UTC))),
        ("opaque", "", "opaque"),
        ("opaque!", "", "opaque!"),
        ("x" * 2_001, "", ""),
        ("", "2026-05-01T02:00:00+02:00", "2026-04-30T23:59:55.000Z"),
        ("", "2026-05-01T00:00:00", ""),
        ("", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("", "9999-12-31T23:59:59-12:00", ""),
        ("", "", ""),
    ],
)
def test_the_next_request_begins_a_little_earlier(
    token: str, as_of: str, cursor: str
) -> None:
    assert cursor_after(token, as_of) == cursor


@pytest.mark.parametrize("document", [[], {"t": 5}, {"t": "x", "u": 1}, {"t": "x"}])
def test_a_token_of_another_form_goes_back_as_it_came(document: object) -> None:
    token = base64.urlsafe_b64encode(written(document)).decode().rstrip("=")

    assert cursor_after(token, "2026-05-01T00:00:00Z") == token


def test_requests_escape_what_a_query_would_lose() -> None:
    endpoint = f"{SITE}of?key=1"

    assert index_url(endpoint, 2) == f"{endpoint}&page=2&limit=50"
    assert changes_url(f"{SITE}of", "a+b=") == f"{SITE}of?since=a%2Bb%3D&limit=50"
    assert page_url(f"{SITE}of", "/a?b&c#ü") == (
        f"{SITE}of?url=%2Fa%3Fb%26c%23%C3%BC&limit=50"
    )
    assert time_of(NOW) == "2026-05-01T00:00:00.000Z"


def test_places_are_few_and_each_once() -> None:
    header = ", ".join(f"</{number}>; rel=openfeeder" for number in range(9))
    page = b"<meta name=openfeeder><link rel=openfeeder href='mailto:a'><p>openfeeder"

    assert len(discovery_urls(SITE, header, page)) == 4
    assert discovery_urls(SITE, "", page) == (FRONT,)
    assert discovery_urls(SITE, "", b"") == (FRONT,)
    assert len(discovery_urls(SITE, '</wp-json/>; rel="https://api.w.org/"', b"")) == 2


@pytest.mark.parametrize(
    "element",
    [
        b"<meta name=openfeeder content=/of.json>",
        b"<link rel=openfeeder href=/of.json>",
        b"<link rel=alternate title=OpenFeeder href=/of.json>",
    ],
)
def test_what_a_page_names_comes_first(element: bytes) -> None:
    places = discovery_urls(SITE, "", element)

    assert places == ("https://site.example/of.json", FRONT)


def test_a_page_that_names_the_protocol_may_have_the_usual_endpoint() -> None:
    places = discovery_urls(SITE, "", b"", is_spoken=True)

    assert places == (FRONT, f"https://site.example{ENDPOINT}")


@pytest.mark.parametrize(
    "body",
    [
        '\ufeff{"items": [{"url": "/a", "title": "naïve"}]}'.encode(),
        '{"items": [{"url": "/a", "title": "naïve"}]}'.encode("utf-16"),
        '{"items": [{"url": "/a", "title": "naïve"}]}'.encode("latin-1"),
        '{"items": [{"url": "/a", "title": "naïve",}],}'.encode(),
        '{"items": [{"url": "/a", "title": "naïve", "summary": NaN}]}'.encode(),
    ],
)
def test_what_templates_write_for_json_is_mended(body: bytes) -> None:
    index = read_listing(body, SITE)

    assert isinstance(index, ListedIndex)
    assert [(each.url, each.title) for each in index.items] == [(f"{SITE}a", "naïve")]


def test_what_is_large_is_not_mended() -> None:
    body = b'{"items": [],}' + b" " * LARGEST_MENDED

    with pytest.raises(MalformedDocument):
        read_listing(body, SITE)


def test_of_llms_txt_the_first_documents_count() -> None:
    llms = f"{SITE}{LLMS[1:]}"
    text = "<https://cdn.example/openfeeder.json> (OpenFeeder.json) (/openfeeder.json)"
    assert urls_in_llms(text.encode(), llms) == (
        "https://cdn.example/openfeeder.json",
        f"{SITE}OpenFeeder.json",
    )
    assert urls_in_llms(b"mailto:openfeeder.json", llms) == ()
    longer = b"x" * 900 + b"/openfeeder.json and openfeeder.txt"
    (place,) = urls_in_llms(longer, llms)
    assert place.endswith("/openfeeder.json")


@given(st.binary() | st.text().map(lambda text: f"{text}openfeeder.json".encode()))
def test_any_llms_txt_can_be_read(body: bytes) -> None:
    assert len(urls_in_llms(body, f"{SITE}llms.txt")) <= 2


NAMES = st.sampled_from(
    [
        *("sync", "added", "updated", "deleted", "items", "url", "chunks", "text"),
        *("version", "site", "feed", "endpoint", "meta", "total_chunks", "title"),
        *("published", "sync_token", "as_of", "total_pages", "schema", "type"),
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
    max_leaves=20,
)
documents = st.binary() | st.dictionaries(NAMES, values).map(written)


@given(documents)
def test_whatever_is_answered_no_reader_raises_anything_but_its_own_error(
    body: bytes,
) -> None:
    for read in (
        lambda: read_front(body, FRONT),
        lambda: read_listing(body, SITE),
        lambda: read_page(body, SITE),
        lambda: parse(body, ParseContext(url=FRONT, content_type="", now=NOW)),
    ):
        with suppress(FeedError):
            read()
