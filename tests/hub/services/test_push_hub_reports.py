"""What is told of other people's hubs: how many, how used, how well they push."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.services import PushHubReportService
from storage.records import PushCount
from tests.support.services import Hub, open_hub

GOOD, BAD = "https://good.example/", "https://bad.example/"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path, unused_hubs=("bad.example",)) as hub:
        yield hub


@pytest.fixture
def reports(hub: Hub) -> PushHubReportService:
    return hub.services.push_hub_reports


async def count(hub: Hub, name: str, *counts: PushCount) -> None:
    for what in counts:
        await hub.storage.pushes.count(name, what)


async def test_without_a_hub_there_are_no_sums(reports: PushHubReportService) -> None:
    found = await reports.most_subscribed(10)
    assert (found.sums, found.hubs, found.has_more) == (None, (), False)


@pytest.mark.parametrize(
    ("limit", "names", "has_more"),
    [(0, [], True), (1, [GOOD], True), (2, [GOOD, BAD], False)],
)
async def test_those_with_the_most_subscriptions_and_the_sums_over_all_are_told_of(
    hub: Hub,
    reports: PushHubReportService,
    limit: int,
    names: list[str],
    has_more: bool,
) -> None:
    await count(hub, GOOD, PushCount.CONFIRMED, PushCount.CONFIRMED)
    await count(hub, BAD, PushCount.CONFIRMED)
    found = await reports.most_subscribed(limit)

    assert [each.hub for each in found.hubs] == sorted(names)
    assert found.has_more is has_more
    if found.hubs:
        assert found.sums is not None
        assert (found.sums.hub, found.sums.counts["confirmed"]) == ("", 3)


async def test_a_hub_that_is_not_used_says_so_and_others_may_be(
    hub: Hub, reports: PushHubReportService
) -> None:
    await count(hub, GOOD, PushCount.CONFIRMED)
    await count(hub, BAD, PushCount.CONFIRMED)
    found = await reports.most_subscribed(2)

    assert found.is_any_used
    assert {each.hub: each.is_used for each in found.hubs} == {GOOD: True, BAD: False}


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ((), None),
        ((PushCount.LATE,), None),
        ((PushCount.BROUGHT,) * 3 + (PushCount.MISSED,), 0.75),
    ],
)
async def test_the_share_of_new_entries_that_a_hub_brought_first(
    hub: Hub,
    reports: PushHubReportService,
    counts: tuple[PushCount, ...],
    share: float | None,
) -> None:
    await count(hub, GOOD, PushCount.CONFIRMED, *counts)
    [report] = (await reports.most_subscribed(1)).hubs

    assert report.first_share == share
