"""Collections of several visits, and of visits whose time is over."""

from __future__ import annotations

import asyncio

import pytest

from hub.core.sites.bounds import SiteBounds, Spent
from hub.core.sites.steps import Downloaded, Unrolled
from hub.polling.spool import Spool
from hub.polling.spools import Spools, unroll, verify
from tests.support.fetch_targets import an_answer
from tests.support.scp_files import RULES, collection, page


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


def a_visit(requests: int) -> Spent:
    return Spent(SiteBounds(seconds=7.0), until=0.0, requests=requests)


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
        assert isinstance(there, Unrolled)
        assert str(found.error) == there.error
        assert "in seconds, exceeds the limit of 7" in there.error
    else:
        assert (found, there) == (False, False)


async def test_a_visit_that_has_read_some_pages_of_a_file_is_to_read_more() -> None:
    spool = Spool(RULES, always)
    made = (page(url=f"https://example.com/{number}") for number in range(2_000))
    spool.write(collection(*made))
    assert isinstance(await unroll(spool, 0, a_visit(1)), Unrolled)
    assert await unroll(spool, 1_999, a_visit(1)) is False
    spool.close()
