"""Which program read a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub.core.news.known_slices import READER_BYTES
from hub.ingest.document_parser import WorkerParser, name_of, reader_name
from protocols.feeds import ParseContext
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.identity import fingerprint
from tests.support.documents import CONTEXT, rss


def test_this_program_has_one_name() -> None:
    assert reader_name() == reader_name()
    assert len(reader_name()) == READER_BYTES


@pytest.mark.parametrize("file", ["reading.py", "feeds/rss.py", "feeds/new.py"])
def test_a_change_of_its_code_makes_it_another_one(tmp_path: Path, file: str) -> None:
    (tmp_path / "feeds").mkdir()
    (tmp_path / "reading.py").write_text("a = 1")
    (tmp_path / "feeds/rss.py").write_text("b = 2")
    before = name_of(tmp_path)

    (tmp_path / file).write_text("c = 3")

    assert name_of(tmp_path) != before


def test_what_it_leaves_behind_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    before = name_of(tmp_path)

    (tmp_path / "__pycache__/reading.pyc").write_bytes(b"compiled")

    assert name_of(tmp_path) == before


async def test_a_worker_reads_only_what_is_new() -> None:
    first = "<item><guid>1</guid><title>one</title></item>"
    second = "<item><guid>2</guid></item>"
    async with WorkerParser(inline_bytes=0) as parser:
        whole = await parser.parse(rss(first), _knowing(b""))
        assert whole.outline is not None
        (slice,) = whole.outline.slices
        known = pack_known(
            whole.outline.setting, [KnownSlice(slice, fingerprint("1"), False)]
        )
        again = await parser.parse(rss(second + first), _knowing(known))

    assert (whole.path, again.path) == ("strict", "incremental")
    assert [entry.id for entry in again.entries] == ["2"]


def _knowing(known: bytes) -> ParseContext:
    return ParseContext(url=CONTEXT.url, now=CONTEXT.now, known=known)
