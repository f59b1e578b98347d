from __future__ import annotations

import gzip

import pytest

from hub.errors import BadAnswer
from hub.polling.spool import MOST_PAGES, Spool
from protocols.errors import InvalidDocument
from tests.support.scp_files import RULES, collection, page


def spooled(data: bytes) -> Spool:
    spool = Spool(RULES)
    for at in range(0, len(data), 5_000):
        spool.write(data[at : at + 5_000])
    return spool


def a_collection(pages: int) -> bytes:
    made = (page(url=f"https://example.com/{number}") for number in range(pages))
    return collection(*made)


async def test_a_collection_is_checked_and_then_unrolled_in_steps() -> None:
    data = gzip.compress(a_collection(450))
    spool = spooled(data)
    assert spool.size == len(data)
    reader = await spool.check()
    assert reader.lines == 450
    sizes, line, urls = [], 0, []
    while (unrolled := await spool.unroll(line)).pages:
        sizes.append(len(unrolled.pages))
        urls += [each.reference for each in unrolled.pages]
        line = unrolled.line
    assert sizes == [MOST_PAGES, MOST_PAGES, 50]
    assert urls == [f"https://example.com/{number}" for number in range(450)]
    assert line == 451
    spool.close()


async def test_it_is_unrolled_from_any_line_on() -> None:
    spool = spooled(a_collection(10))
    unrolled = await spool.unroll(8)
    assert [each.reference[-1] for each in unrolled.pages] == ["7", "8", "9"]
    again = await spool.unroll(10)
    assert [each.reference[-1] for each in again.pages] == ["9"]
    spool.close()


async def test_a_step_has_no_more_than_some_bytes() -> None:
    long = [page(url=f"https://example.com/{n}", title="x" * 400_000) for n in range(7)]
    spool = spooled(collection(*long))
    unrolled = await spool.unroll(0)
    assert 1 < len(unrolled.pages) < 7
    spool.close()


async def test_what_is_wrong_anywhere_is_found_before_anything_is_unrolled() -> None:
    spool = spooled(a_collection(300) + b'{"url":"https://example.com/"}')
    with pytest.raises(InvalidDocument, match="line 302: /title"):
        await spool.check()
    spool.close()


async def test_a_disk_that_is_full_is_a_bad_answer() -> None:
    class Full:
        def write(self, piece: bytes) -> None:
            raise OSError(28, "No space left on device")

    spool = Spool(RULES)
    spool.close()
    spool._file = Full()  # type: ignore[assignment]
    with pytest.raises(BadAnswer, match="cannot be kept: No space left on device"):
        spool.write(b"x")
