"""What is read next of a section, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.scp.read.reading_plans import (
    LONGEST_AGO,
    SectionReadingPlan,
    SectionState,
    plan_section,
    wanted_sections,
)
from protocols.scp.read.sitemap_reader import SiteFile, SiteMap

DAY = datetime(2026, 1, 1, tzinfo=UTC)
NOW = DAY + timedelta(days=3)


def hours(count: float) -> datetime:
    return DAY + timedelta(hours=count)


def snapshot(at: float, size: int | None = 1_000, until: float = 999) -> SiteFile:
    return SiteFile(
        section="all",
        url=f"https://example.com/s{at}",
        generated=hours(at),
        expires=hours(until),
        size=size,
    )


def delta(since: float, at: float, until: float = 999, size: int = 10) -> SiteFile:
    return SiteFile(
        section="all",
        url=f"https://example.com/d{since}-{at}",
        generated=hours(at),
        since=hours(since),
        expires=hours(until),
        size=size,
    )


def state(reached: float, snapshot: float = 0, is_broken: bool = False) -> SectionState:
    return SectionState(
        reached=hours(reached), snapshot=hours(snapshot), is_broken=is_broken
    )


def names(plan: SectionReadingPlan) -> list[str]:
    return [each.url.rpartition("/")[2] for each in plan.files]


def test_at_first_the_snapshot_then_the_deltas_after_it() -> None:
    files = [delta(3, 4), snapshot(2), delta(2, 3), snapshot(1), delta(1, 2)]
    plan = plan_section(files, None, NOW)
    assert names(plan) == ["s2", "d2-3", "d3-4"]
    assert not plan.is_broken
    assert not plan.is_expired


def test_later_the_deltas_that_are_new_along_their_chain() -> None:
    files = [snapshot(0), delta(0, 1), delta(2, 3), delta(1, 2)]
    assert names(plan_section(files, state(1), NOW)) == ["d1-2", "d2-3"]
    assert names(plan_section(files, state(3), NOW)) == []


def test_of_deltas_that_overlap_those_that_lead_farthest() -> None:
    files = [snapshot(0), delta(0, 1), delta(1, 2), delta(0, 3), delta(2, 3)]
    assert names(plan_section(files, state(0), NOW)) == ["d0-3"]


def test_a_broken_chain_is_mended_by_a_newer_snapshot() -> None:
    files = [snapshot(5), delta(4, 5), delta(5, 6)]
    plan = plan_section(files, state(1), NOW)
    assert names(plan) == ["s5", "d5-6"]
    assert not plan.is_broken


def test_without_a_newer_snapshot_the_gap_is_remembered_until_there_is_one() -> None:
    files = [snapshot(0), delta(4, 5), delta(5, 6)]
    plan = plan_section(files, state(1), NOW)
    assert names(plan) == ["d4-5", "d5-6"]
    assert plan.is_broken
    files = [snapshot(7), delta(6, 7), delta(7, 8)]
    plan = plan_section(files, state(6, is_broken=True), NOW)
    assert names(plan) == ["s7", "d7-8"]


def test_a_full_reading_begins_with_the_newest_snapshot_however_far_one_is() -> None:
    files = [snapshot(0), snapshot(19), delta(0, 19), delta(19, 20)]
    assert names(plan_section(files, state(20), NOW)) == []
    plan = plan_section(files, state(20), NOW, is_full=True)
    assert names(plan) == ["s19", "d19-20"]


def test_a_snapshot_older_than_what_was_read_is_never_read() -> None:
    files = [snapshot(40), delta(40, 41)]
    assert names(plan_section(files, state(41), NOW)) == []


def test_what_has_the_fewest_bytes_is_read() -> None:
    files = [snapshot(2, size=20), delta(0, 1), delta(1, 2)]
    assert names(plan_section(files, state(0), NOW)) == ["s2"]
    files = [snapshot(2, size=21), delta(0, 1), delta(1, 2)]
    assert names(plan_section(files, state(0), NOW)) == ["d0-1", "d1-2"]
    files = [snapshot(2, size=None), delta(0, 1), delta(1, 2)]
    assert names(plan_section(files, state(0), NOW)) == ["d0-1", "d1-2"]


def test_a_site_of_snapshots_alone_is_read_whenever_there_is_a_new_one() -> None:
    assert names(plan_section([snapshot(1)], state(0), NOW)) == ["s1"]
    assert names(plan_section([snapshot(0)], state(0), NOW)) == []


def test_a_site_of_deltas_alone_is_read_as_far_as_it_goes() -> None:
    plan = plan_section([delta(1, 2), delta(0, 1)], None, NOW)
    assert names(plan) == ["d0-1", "d1-2"]
    assert plan.is_broken
    first = plan_section([snapshot(9)], SectionState(reached=hours(2)), NOW)
    assert names(first) == ["s9"]


def test_what_has_expired_is_not_fetched_but_the_sitemap_again() -> None:
    plan = plan_section([snapshot(1, until=2)], None, NOW)
    assert plan == SectionReadingPlan(is_expired=True)
    gone = [snapshot(0, until=1), delta(0, 1, until=2), delta(1, 2)]
    plan = plan_section(gone, state(1), NOW)
    assert names(plan) == ["d1-2"]
    assert not plan.is_expired  # nobody wants what has
    plan = plan_section(gone, state(0), NOW)
    assert names(plan) == ["d1-2"]
    assert plan.is_expired
    assert plan.is_broken


def test_what_is_said_to_be_made_in_the_future_is_not_read() -> None:
    ahead = snapshot(1_000, until=2_000)
    assert plan_section([ahead], None, NOW) == SectionReadingPlan(incredible=ahead)
    plan = plan_section([snapshot(0), delta(0, 1), ahead], None, NOW)
    assert names(plan) == ["s0", "d0-1"]
    assert plan.incredible == ahead


def test_what_was_made_too_long_ago_is_not_read_unless_it_was_before() -> None:
    old = snapshot(0)
    later = NOW + LONGEST_AGO
    assert plan_section([old], None, later) == SectionReadingPlan(incredible=old)
    assert plan_section([old], state(0), later) == SectionReadingPlan()


def test_nothing_is_nothing() -> None:
    assert plan_section([], None, NOW) == SectionReadingPlan()
    assert plan_section([], state(0), NOW) == SectionReadingPlan()


def section(name: str, pages: int | None, is_delta: bool = False) -> SiteFile:
    return SiteFile(
        section=name,
        url="https://example.com/",
        generated=DAY,
        since=DAY if is_delta else None,
        pages=pages,
    )


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ([section("all", 7), section("blog", 5), section("docs", 7)], ("all",)),
        ([section("all", 5), section("blog", 6)], ("all", "blog")),
        ([section("docs", 1), section("blog", None)], ("blog", "docs")),
        ([section("all", None), section("blog", None)], ("all",)),
        ([section("all", 3), section("all", 9, is_delta=True)], ("all",)),
        ([], ()),
    ],
)
def test_all_is_read_instead_of_its_parts(
    files: list[SiteFile], wanted: tuple[str, ...]
) -> None:
    assert wanted_sections(SiteMap(files=tuple(files))) == wanted


_FILES = st.lists(
    st.one_of(
        st.builds(snapshot, st.integers(0, 80), st.none() | st.integers(0, 50)),
        st.tuples(st.integers(0, 80), st.integers(0, 80)).map(
            lambda pair: delta(min(pair), max(pair))
        ),
    ),
    max_size=12,
)


@given(_FILES, st.none() | st.builds(state, st.integers(0, 80), st.integers(0, 80)))
def test_a_plan_ends_where_the_newest_file_does_and_goes_only_forward(
    files: list[SiteFile], before: SectionState | None
) -> None:
    plan = plan_section(files, before, hours(200))
    moments = [each.generated for each in plan.files]
    assert moments == sorted(set(moments)) or before is None
    assert all(each.since is not None for each in plan.files[1:])
    reached = before.reached if before else hours(-1)
    newest = max([reached, *(each.generated for each in files)])
    assert max([reached, *moments]) == newest
    if not plan.is_broken:
        for one, other in zip(plan.files, plan.files[1:], strict=False):
            assert other.since is not None
            assert other.since <= one.generated
