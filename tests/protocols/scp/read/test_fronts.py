"""Sitemaps as what a site is registered by, among all other documents."""

from __future__ import annotations

import gzip
from random import Random

import pytest

from protocols.feeds import ParseContext, parse
from protocols.model import Feed, FeedFormat, Link
from protocols.protocol_errors import FeedError, NotAFeed
from protocols.scp.read.sitemap_reader import LARGEST
from tests.support.scp_files import NOW

SITEMAP = (
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    b' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
    b'<scp:collection section="all" type="snapshot" url="/1.scp.gz" pages="1" size="1"'
    b' generated="2026-01-02T00:00:00Z" expires="2026-01-03T00:00:00Z"/></urlset>'
)
TOO_MUCH = Random(1).randbytes(LARGEST // 2).hex().encode()
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
        (gzip.compress(SITEMAP)[:3] + b"\xff" * 40, "gzip data"),
        (gzip.compress(SITEMAP.replace(b"scp:collection", b"url")), "gzip data"),
    ],
)
def test_any_other_document_is_what_it_was(body: bytes, complaint: str) -> None:
    with pytest.raises(NotAFeed, match=complaint):
        parse(body, CONTEXT)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (SITEMAP[:-9], "line 1"),
        (gzip.compress(SITEMAP[:-9]), "line 1"),
        (gzip.compress(SITEMAP)[:-9], "ends early"),
        (gzip.compress(SITEMAP + TOO_MUCH, 1), "the unpacked size in bytes"),
    ],
)
def test_one_that_is_damaged_or_too_long_is_an_error(
    body: bytes, complaint: str
) -> None:
    with pytest.raises(FeedError, match=complaint):
        parse(body, CONTEXT)
