"""Sitemaps as what a site is registered by, among all other documents."""

from __future__ import annotations

import gzip

import pytest

from protocols.errors import FeedError, NotAFeed
from protocols.feeds import ParseContext, parse
from protocols.model import Feed, FeedFormat, Link
from tests.support.scp_files import NOW

SITEMAP = (
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    b' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
    b'<scp:collection section="all" type="snapshot" url="/1.scp.gz" pages="1" size="1"'
    b' generated="2026-01-02T00:00:00Z" expires="2026-01-03T00:00:00Z"/></urlset>'
)
CONTEXT = ParseContext(url="https://example.com/maps/sitemap.xml", now=NOW)


@pytest.mark.parametrize("body", [SITEMAP, b"\n" + SITEMAP, gzip.compress(SITEMAP)])
def test_a_sitemap_with_collections_is_a_site(body: bytes) -> None:
    found = parse(body, CONTEXT)
    assert found.format is FeedFormat.SCP
    assert found.entries == ()
    assert found.feed == Feed(
        title="example.com", links=(Link(href="https://example.com/"),)
    )


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (SITEMAP.replace(b"scp-protocol", b"another"), "a sitemap"),
        (gzip.compress(b"words"), "gzip data"),
        (gzip.compress(SITEMAP.replace(b"scp:collection", b"url")), "gzip data"),
    ],
)
def test_any_other_document_is_what_it_was(body: bytes, complaint: str) -> None:
    with pytest.raises(NotAFeed, match=complaint):
        parse(body, CONTEXT)


def test_one_that_is_damaged_is_trouble() -> None:
    with pytest.raises(FeedError):
        parse(SITEMAP[:-9], CONTEXT)
