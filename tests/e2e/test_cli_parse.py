"""``fanfare parse``: without a hub, by file and by URL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import fanfare
from tests.support.hub_process import LOOPBACK
from tests.support.publisher import Publisher

pytestmark = pytest.mark.once("it needs no database")

RSS = """<?xml version="1.0"?>
<rss version="2.0"><channel><title>Notes</title><link>https://example.org/</link>
<item><title>First</title><link>https://example.org/1</link><guid>1</guid></item>
</channel></rss>"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "feed.xml"
    path.write_text(RSS)
    return path


async def test_a_file_is_printed_as_subscribers_would_get_it(document: Path) -> None:
    outcome = await fanfare("parse", str(document), variables={})
    assert outcome.code == 0
    printed = json.loads(outcome.out)
    assert printed["title"] == "Notes"
    assert [item["title"] for item in printed["items"]] == ["First"]
    assert "rss, read by: strict, 1 entry" in outcome.err


async def test_atom_is_another_way_to_print_it(document: Path) -> None:
    outcome = await fanfare("parse", str(document), "--format", "atom", variables={})
    assert outcome.code == 0
    assert "http://www.w3.org/2005/Atom" in outcome.out
    assert "First" in outcome.out


async def test_a_url_is_fetched_under_the_address_guard() -> None:
    async with Publisher() as publisher:
        url = publisher.url(publisher.add_feed())
        refused = await fanfare("parse", url, variables={})
        allowed = await fanfare("parse", url, variables=LOOPBACK)
    assert refused.code == 1
    assert "does not connect to this address" in refused.err
    assert allowed.code == 0
    assert json.loads(allowed.out)["items"][0]["title"] == "Entry 1"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the document is empty"),
        (b"<html><body>Hello</body></html>", "not a feed"),
        (b"\x00\x01\x02", ""),
    ],
)
async def test_what_is_no_feed_is_said_not_to_be(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "document"
    path.write_bytes(content)
    outcome = await fanfare("parse", str(path), variables={})
    assert (outcome.code, outcome.out) == (1, "")
    assert words in outcome.err
    assert "Traceback" not in outcome.err


async def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    outcome = await fanfare("parse", str(tmp_path / "none.xml"), variables={})
    assert outcome.code == 1
    assert "No such file" in outcome.err
