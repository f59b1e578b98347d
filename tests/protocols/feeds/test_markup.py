"""Markup that was not escaped, written out again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from protocols.feeds import ParseContext, parse

CONTEXT = ParseContext(
    url="https://site.example/feed", now=datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.mark.parametrize(
    "namespace",
    [
        "",
        "http://backend.userland.com/rss2",
        "http://purl.org/rss/1.0/",
        "http://www.w3.org/1999/xhtml",
        "urn:of-nobody",
    ],
)
def test_html_in_the_namespace_of_the_feed_is_html(namespace: str) -> None:
    document = (
        f'<rss version="2.0" xmlns="{namespace}"><channel><item><guid>1</guid>'
        "<description>a <b>c</b><i/><br/> &lt; d</description></item></channel></rss>"
    )
    [entry] = parse(document.encode(), CONTEXT).entries
    assert entry.summary is not None
    assert entry.summary.value == "a <b>c</b><i></i><br/> &lt; d"


def test_what_is_of_another_namespace_declares_it() -> None:
    document = (
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="urn:math" xmlns:x="urn:x">'
        '<entry><id>urn:1</id><content type="xhtml">'
        '<div xmlns="http://www.w3.org/1999/xhtml"><p xml:lang="de">a</p><m:v/></div>'
        "</content></entry></feed>"
    )
    [entry] = parse(document.encode(), CONTEXT).entries
    assert entry.content is not None
    assert entry.content.value == ('<p xml:lang="de">a</p><m:v xmlns:m="urn:math"/>')
