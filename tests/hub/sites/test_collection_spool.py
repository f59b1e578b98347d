"""Collections of several visits, and of visits whose time is over."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator

import pytest

from hub.core.sites.site_bounds import SiteBounds, VisitUsage
from hub.core.sites.walk_steps import CollectionPages, Downloaded
from hub.http.network_errors import BadAnswer
from hub.sites.collection_spool import (
    MOST_PAGES,
    SLICE,
    OutOfTime,
    Spool,
    Spools,
    unroll,
    verify,
)
from protocols.protocol_errors import EmptyDocument, InvalidDocument
from tests.support.fetch_targets import an_answer
from tests.support.scp_files import RULES, collection, page


def spooled(data: bytes, is_over: Callable[[], bool] = lambda: False) -> Spool:
    spool = Spool(RULES, is_over)
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


async def test_what_is_passed_over_in_pages_is_told_with_them() -> None:
    spool = spooled(collection(page(content=[{"type": "hologram"}])))
    assert (await spool.check()).warnings.lines == []
    unrolled = await spool.unroll(0)
    assert unrolled.warnings == ("line 2: /content/0/type: unknown type; ignored",)
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
    with pytest.raises(BadAnswer, match="cannot be stored: No space left on device"):
        spool.write(b"x")


async def test_it_goes_on_at_a_later_line_in_slices() -> None:
    slices: list[int] = []

    def is_over() -> bool:
        slices.append(1)
        return False

    data = a_collection(6_000)
    spool = spooled(data, is_over)
    (last,) = (await spool.unroll(6_000)).pages
    assert last.reference == "https://example.com/5999"
    spool.close()
    assert len(slices) >= len(data) // SLICE - 1 >= 7


def after(count: int) -> Callable[[], bool]:
    """The time is over when that was asked so often."""
    left: Iterator[bool] = iter([False] * count)
    return lambda: next(left, True)


async def test_when_the_time_is_over_nothing_more_is_read() -> None:
    data = a_collection(6_000)
    spool = spooled(data, after(3))
    with pytest.raises(OutOfTime):
        await spool.check()
    spool.close()
    spool = spooled(data, after(3))
    assert len((await spool.unroll(0)).pages) == MOST_PAGES
    with pytest.raises(OutOfTime):
        await spool.unroll(6_000)
    spool.close()


async def test_lines_that_are_left_out_do_not_make_a_step_longer() -> None:
    bad = [page(url="no", title="x" * 100_000) for _ in range(40)]
    spool = spooled(collection(page(), *bad, page(url="https://example.com/b")))
    first = await spool.unroll(0)
    assert [each.reference for each in first.pages] == ["https://example.com/a"]
    second = await spool.unroll(first.line)
    assert [each.reference for each in second.pages] == ["https://example.com/b"]
    spool.close()


class Damaged:
    """A file of a disk that can be written to and not read from."""

    def write(self, piece: bytes) -> None:
        pass

    def seek(self, at: int) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        self.seek(0)


async def test_a_disk_that_is_full_when_it_is_read_is_the_download_s_error() -> None:
    spool = Spool(RULES)
    spool._file = Damaged()  # type: ignore[assignment]
    found = await spool.verify(an_answer(200))
    assert found.fetched.error == "cannot be stored: No space left on device"
    unrolled = await spool.unroll(0)
    assert unrolled.error == "cannot be stored: No space left on device"
    spool.close()


async def test_a_file_of_nothing_is_an_empty_one() -> None:
    spool = Spool(RULES)
    assert isinstance((await spool.verify(an_answer(200))).error, EmptyDocument)
    spool.close()


def always() -> bool:
    return True


async def test_no_more_than_some_are_open_at_a_time() -> None:
    spools = Spools(most=2, seconds=600.0)
    first, second = [await spools.open(RULES, always) for _ in range(2)]
    third = asyncio.create_task(spools.open(RULES, always))
    assert first is not None
    assert second is not None
    assert await Spools(most=0, seconds=0.0).open(RULES, always) is None
    assert not third.done()
    spools.close(first)
    assert isinstance(await third, Spool)
    second.close()


async def test_a_visit_that_waits_too_long_is_put_off() -> None:
    spools = Spools(most=1, seconds=0.01)
    first = await spools.open(RULES, always)
    assert first is not None
    assert await spools.open(RULES, always) is None
    spools.close(first)
    assert await spools.open(RULES, always) is not None


def a_visit(requests: int) -> VisitUsage:
    return VisitUsage(SiteBounds(seconds=7.0), until=0.0, requests=requests)


@pytest.mark.parametrize("requests", [1, 2])
async def test_what_takes_all_of_a_visit_cannot_be_used(requests: int) -> None:
    """What had a part of one may be read in the next."""
    spool = Spool(RULES, always)
    spool.write(collection(page()))
    found = await verify(spool, an_answer(200), a_visit(requests))
    there = await unroll(spool, 9, a_visit(requests))
    spool.close()
    if requests == 1:
        assert isinstance(found, Downloaded)
        assert isinstance(there, CollectionPages)
        assert str(found.error) == there.error
        assert "in seconds, exceeds the limit of 7" in there.error
    else:
        assert (found, there) == (False, False)


async def test_a_visit_that_has_read_some_pages_of_a_file_is_to_read_more() -> None:
    spool = Spool(RULES, always)
    made = (page(url=f"https://example.com/{number}") for number in range(2_000))
    spool.write(collection(*made))
    assert isinstance(await unroll(spool, 0, a_visit(1)), CollectionPages)
    assert await unroll(spool, 1_999, a_visit(1)) is False
    spool.close()
