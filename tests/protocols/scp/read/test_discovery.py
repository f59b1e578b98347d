"""What robots.txt and sitemaps name."""

from __future__ import annotations

import gzip
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import (
    FeedError,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from protocols.scp.collection import CollectionHead, CollectionType
from protocols.scp.read import sitemap_reader
from protocols.scp.read.collection_heads import read_moment
from protocols.scp.read.sitemap_reader import (
    SiteFile,
    SiteSection,
    read_sitemap,
    sitemaps_of_robots,
)
from protocols.scp.write.sitemap import ListedCollection, ListedSection, render_sitemap

URL = "https://example.com/sitemap.xml"
AT = datetime(2026, 1, 2, tzinfo=UTC)
OPENING = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
)
SNAPSHOT = (
    '<scp:collection section="all" type="snapshot" url="https://cdn.example/1.scp.gz"'
    ' generated="2026-01-02T00:00:00Z" expires="2026-01-03T00:00:00Z" pages="7"'
    ' size="900"/>'
)
DELTA = (
    '<scp:delta section="all" period="day2" url="/2.scp.gz"'
    ' generated="2026-01-02T12:00:00Z"'
    ' expires="2026-01-04T00:00:00Z" pages="2" size="300"'
    ' since="2026-01-02T00:00:00Z"/>'
)


def urlset(*elements: str) -> bytes:
    return f"{OPENING}{''.join(elements)}</urlset>".encode()


def test_robots_names_sitemaps() -> None:
    robots = (
        b"\xef\xbb\xbfSitemap: https://example.com/one.xml\r\n"
        b"User-agent: *\nDisallow: /\n"
        b"  siteMAP :/two.xml # the second\n"
        b"Sitemap: https://example.com/one.xml\nSitemap: ftp://example.com/x\n"
        b"Sitemap: http://[::1\nSitemap: http://example.com:999999/\n"
        b"Sitemap:\nSitemap: # none\n# Sitemap: https://example.com/no.xml\n"
    )
    assert sitemaps_of_robots(robots, "https://example.com/robots.txt") == (
        "https://example.com/one.xml",
        "https://example.com/two.xml",
    )


def test_robots_names_no_more_than_some() -> None:
    robots = b"".join(b"Sitemap: /%d\n" % each for each in range(100))
    assert len(sitemaps_of_robots(robots, "https://example.com/robots.txt")) == 50


@given(st.binary(max_size=500))
def test_any_robots_can_be_read(body: bytes) -> None:
    sitemaps_of_robots(body, "https://example.com/robots.txt")
    sitemaps_of_robots(b"Sitemap: " + body, "https://example.com/robots.txt")


@pytest.mark.parametrize(
    "pack", [pytest.param(bytes, id="plain"), pytest.param(gzip.compress, id="gzip")]
)
def test_a_sitemap_names_sections_snapshots_and_deltas(pack) -> None:  # type: ignore[no-untyped-def]
    body = urlset(
        "<scp:version>0.1</scp:version><scp:compression>zstd,gzip</scp:compression>",
        '<scp:section name="all" updateFreq="daily" pages="~12000"/>',
        SNAPSHOT,
        DELTA,
        "<scp:novelty/><url><loc>https://example.com/</loc></url>",
    )
    found = read_sitemap(pack(body), URL)
    assert found.version == "0.1"
    assert found.sections == (SiteSection(name="all", frequency="daily", pages=12_000),)
    assert found.problems == ()
    snapshot, delta = found.files
    assert snapshot == SiteFile(
        section="all",
        url="https://cdn.example/1.scp.gz",
        generated=AT,
        expires=AT + timedelta(days=1),
        pages=7,
        size=900,
    )
    assert snapshot.type is CollectionType.SNAPSHOT
    assert delta.type is CollectionType.DELTA
    assert delta.since == AT
    assert delta.url == "https://example.com/2.scp.gz"


def test_what_this_hub_publishes_can_be_read() -> None:
    head = CollectionHead(section="all", type=CollectionType.SNAPSHOT, generated=AT)
    delta = CollectionHead(
        section="all",
        type=CollectionType.DELTA,
        generated=AT + timedelta(hours=1),
        since=AT,
    )
    body = render_sitemap(
        sections=[ListedSection(name="all", pages=3)],
        collections=[
            ListedCollection(head=each, url=URL, expires=AT, pages=3, size=10)
            for each in (head, delta)
        ],
        pages=["https://example.com/"],
        compression=["zstd", "gzip"],
        frequency="hourly",
    )
    found = read_sitemap(body, URL)
    assert found.problems == ()
    assert [(each.generated, each.since) for each in found.files] == [
        (AT, None),
        (AT + timedelta(hours=1), AT),
    ]


def test_an_index_names_others() -> None:
    body = (
        b'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        b"<!-- x --><sitemap><loc> /a.xml </loc><lastmod>2026-01-01</lastmod></sitemap>"
        b"<sitemap><loc>https://example.com/b.xml.gz</loc></sitemap>"
        b"<sitemap><loc>javascript:x</loc></sitemap>"
        b"<sitemap><loc>http://h:999999/</loc></sitemap><sitemap/>"
        b"<sitemap><loc>/a.xml</loc></sitemap></sitemapindex>"
    )
    assert read_sitemap(body, URL).children == (
        "https://example.com/a.xml",
        "https://example.com/b.xml.gz",
    )
    bare = b"<sitemapindex><sitemap><loc>/a.xml</loc></sitemap></sitemapindex>"
    assert read_sitemap(bare, URL).children == ("https://example.com/a.xml",)


@pytest.mark.parametrize(
    ("element", "problem", "is_kept"),
    [
        (SNAPSHOT.replace('"all"', '"a.b"'), "collection 1: section: expected", False),
        (SNAPSHOT.replace("snapshot", "delta"), "collection 1: type: expected", False),
        (
            SNAPSHOT.replace("https://cdn.example/1.scp.gz", "ftp://x/1"),
            "collection 1: url: expected an http or https URL, not 'ftp://x/1'",
            False,
        ),
        (
            SNAPSHOT.replace("https://cdn.example/1.scp.gz", "http://[::1"),
            "collection 1: url: expected an http or https URL, not 'http://[::1'",
            False,
        ),
        (
            SNAPSHOT.replace("2026-01-02T00:00:00Z", "2026-01-02"),
            "collection 1: generated: expected a time such as 2026-01-02T03:04:05Z,"
            " not '2026-01-02'",
            False,
        ),
        (SNAPSHOT.replace('expires="2026-01-03T', 'expires="T'), "1: expires", True),
        (SNAPSHOT.replace('"7"', '"many"'), "collection 1: pages: expected", True),
        (SNAPSHOT.replace(' size="900"', ""), "collection 1: size: expected", True),
        (DELTA.replace("since=", "from="), "delta 1: since: expected a time", False),
        (
            DELTA.replace('since="2026-01-02T0', 'since="2026-02-02T0'),
            "delta 1: since: expected a time before that of generated",
            False,
        ),
    ],
)
def test_a_wrong_attribute_is_named(element: str, problem: str, is_kept: bool) -> None:
    found = read_sitemap(urlset(element), URL)
    assert len(found.problems) == 1
    assert problem in found.problems[0]
    assert bool(found.files) is is_kept


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ('<scp:section name="" updateFreq="daily" pages="1"/>', "section 1: name"),
        ('<scp:section name="a" updateFreq="often" pages="1"/>', "updateFreq"),
        ('<scp:section name="a" updateFreq="daily" pages="few"/>', "pages"),
    ],
)
def test_a_wrong_section_is_named(element: str, problem: str) -> None:
    (line,) = read_sitemap(urlset(element), URL).problems
    assert problem in line


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", MalformedDocument),
        (b"<urlset>", MalformedDocument),
        (b"\x1f\x8bbroken by somebody", MalformedDocument),
        (b"<html><body/></html>", NotAFeed),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><urlset>&a;</urlset>', MalformedDocument),
        ("<urlset/>".encode("utf-16"), MalformedDocument),
        (
            b'<?xml version="1.0" encoding="latin-1"?><urlset>\xe4</urlset>',
            MalformedDocument,
        ),
        (urlset(*[SNAPSHOT] * 1_001), LimitExceeded),
        (urlset("<scp:collection/>" * 5_001), LimitExceeded),
        (urlset("<scp:novelty/>" * 5_001), LimitExceeded),
        (urlset("<a/>" * 500_001), LimitExceeded),
        (
            urlset(
                *[
                    f'<scp:section name="s{n}" updateFreq="daily" pages="1"/>'
                    for n in range(201)
                ]
            ),
            LimitExceeded,
        ),
        (gzip.compress(bytes(60_000_000)), LimitExceeded),
        (b" " * (sitemap_reader.LARGEST + 1), LimitExceeded),
    ],
)
def test_what_is_no_sitemap_is_refused(body: bytes, error: type[FeedError]) -> None:
    with pytest.raises(error):
        read_sitemap(body, URL)


@pytest.mark.parametrize("namespace", ["{}", "a}b", "{", "x{y}z", "}"])
def test_a_namespace_that_is_none_is_an_error_of_ours(namespace: str) -> None:
    body = f'<urlset xmlns="{namespace}"><url><loc>a</loc></url></urlset>'.encode()
    with pytest.raises(MalformedDocument, match="is not a valid URI"):
        read_sitemap(body, "https://a.example/sitemap.xml")


def test_an_unpacked_size_may_be_asked_for() -> None:
    body = gzip.compress(urlset(SNAPSHOT, " " * 5_000))
    assert read_sitemap(body, URL, largest=6_000).files
    with pytest.raises(LimitExceeded, match="unpacked size in bytes"):
        read_sitemap(body, URL, largest=5_000)


def test_no_more_is_held_of_what_is_wrong_than_is_told() -> None:
    body = urlset(f'<scp:delta section="{"." * 80}" url="ftp://x/"/>' * 4_900)
    tracemalloc.start()
    try:
        found = read_sitemap(body, URL)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.problems) == 50
    assert most < 3 * len(body)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.one_of(
                st.sampled_from([SNAPSHOT, DELTA, "<url/>", "</url>", "&x;"]),
                st.text(max_size=9),
            ),
            max_size=6,
        ).map(lambda parts: urlset(*parts)),
    )
)
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    with suppress(FeedError):
        read_sitemap(body, URL)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04:05.25z", datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("yesterday", None),
        ("2026-13-02", None),
        ("0001-01-01T00:00:00+10:00", None),
        ("20260102", None),
        (None, None),
        (7, None),
    ],
)
def test_moments_are_aware(text: object, moment: datetime | None) -> None:
    assert read_moment(text) == moment
