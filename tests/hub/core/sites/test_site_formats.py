"""What people are shown of a site's reading."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub.core.sites.openfeeder_session import OpenFeederState
from hub.core.sites.openfeeder_session import pack_state as pack_walk
from hub.core.sites.scp_session import ScpFile, ScpSection, ScpState
from hub.core.sites.scp_session import pack_state as pack_scp
from hub.core.sites.site_formats import site_facts
from hub.core.sites.site_state import SiteState, pack_state, read_state
from storage.packing import pack


def packed(**walk: object) -> bytes:
    state = SiteState(
        format="openfeeder", walk=pack_walk(OpenFeederState(**walk)), pages=7
    )
    return pack_state(state)


def test_of_a_site_that_was_never_read_there_is_nothing_to_tell() -> None:
    for format in ("openfeeder", "unheard-of"):
        facts = site_facts(b"", format)
        assert (facts.kind, facts.pages, facts.is_read) == (format, 0, False)
        assert (facts.phase, facts.cursor, facts.walked_at) == ("", "", None)


@pytest.mark.parametrize(
    ("walk", "phase"),
    [
        ({"page": 3}, "walking the index, at page 3"),
        ({"confirming": True}, "requesting pages that are missing in the index"),
        ({"read_through": "a"}, "reading what has changed"),
        ({}, ""),
    ],
)
def test_the_phase_is_what_is_under_way(walk: dict[str, object], phase: str) -> None:
    assert site_facts(packed(**walk), "openfeeder").phase == phase


def test_cursor_and_times_are_told_as_far_as_there_are_any() -> None:
    facts = site_facts(packed(cursor="c", walked_at=60.0), "openfeeder")
    ignored = site_facts(packed(cursor="c", gives_changes=False), "openfeeder")

    assert (facts.pages, facts.cursor) == (7, "c")
    assert facts.walked_at == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert facts.reread_at is None
    assert ignored.cursor == ""


FILE = ScpFile(section="all", url="https://a.example/1.scp", generated=60.0)


@pytest.mark.parametrize(
    ("walk", "phase"),
    [
        (ScpState(), ""),
        (ScpState(pending=(FILE,)), "reading https://a.example/1.scp"),
        (
            ScpState(pending=(FILE,), line=7),
            "reading https://a.example/1.scp, from line 8",
        ),
        (
            ScpState(pending=(FILE,), failing="it is no file"),
            "reading the site's feed instead of its collections",
        ),
    ],
)
def test_of_collections_it_is_told_which_is_read(walk: ScpState, phase: str) -> None:
    state = SiteState(format="scp", walk=pack_scp(walk), pages=7)
    facts = site_facts(pack_state(state), "scp")
    assert (facts.phase, facts.cursor, facts.walked_at) == (phase, "", None)


def test_of_collections_it_is_told_how_far_all_are_read() -> None:
    sections = {"a": ScpSection(reached=120.0), "b": ScpSection(reached=60.0)}
    walk = pack_scp(ScpState(sections=sections, full_at=30.0))
    facts = site_facts(pack_state(SiteState(format="scp", walk=walk)), "scp")
    assert facts.cursor == "1970-01-01T00:01:00+00:00"
    assert facts.walked_at == datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)


def test_a_state_of_another_format_or_version_is_begun_anew() -> None:
    state = SiteState(format="scp", walk=b"w", is_read=True, pages=7)
    later = SiteState(version=9, format="openfeeder", pages=7)

    other = read_state(pack_state(state), "openfeeder")
    newer = read_state(pack_state(later), "openfeeder")

    assert (other.walk, other.is_read, other.pages) == (b"", False, 7)
    assert newer == SiteState(format="openfeeder")
    assert read_state(pack("no state"), "openfeeder") == newer


def test_a_walk_of_a_later_version_is_begun_anew() -> None:
    facts = site_facts(packed(version=9, page=3), "openfeeder")

    assert facts.phase == ""
