from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.scp.collection import (
    CollectionHead,
    CollectionType,
    Encoding,
    head_line,
    section_name,
)
from protocols.scp.write.sitemap import (
    ListedCollection,
    ListedSection,
    render_sitemap,
    update_frequency,
)
from tests.support.scp_schemas import faults_of_head, faults_of_sitemap

GENERATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SNAPSHOT = CollectionHead(
    section="all", type=CollectionType.SNAPSHOT, generated=GENERATED
)
DELTA = CollectionHead(
    section="all",
    type=CollectionType.DELTA,
    generated=GENERATED,
    since=GENERATED - timedelta(hours=1),
)


@pytest.mark.parametrize("head", [SNAPSHOT, DELTA])
def test_the_first_line_names_the_collection(head: CollectionHead) -> None:
    line = head_line(head)
    assert line.endswith(b"}\n")
    document = orjson.loads(line)
    assert faults_of_head(document) == []
    members = document["collection"]
    assert members["id"] == f"all-{head.type}-20260102T030405Z"
    assert members["version"] == "0.1"
    assert ("since" in members) == (head.type is CollectionType.DELTA)
    assert "checksum" not in members


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("", ""),
        ("  ", ""),
        ("news", "news"),
        ("News & more!", "News-more"),
        ("all", ""),
        ("ALL", ""),
        ("новости", "section-73c0b5b9"),
    ],
)
def test_sections_have_names_that_all_readers_take(label: str, name: str) -> None:
    found = section_name(label)
    assert found == name or (
        found.startswith("section-") and name.startswith("section-")
    )


@given(st.text(max_size=200))
def test_whatever_a_section_is_called_it_has_a_name(label: str) -> None:
    name = section_name(label)
    head = CollectionHead(
        section=name or "all", type=CollectionType.SNAPSHOT, generated=GENERATED
    )
    assert faults_of_head(orjson.loads(head_line(head))) == []
    assert bool(label.strip()) == bool(name) or name == ""


def test_long_labels_that_differ_have_names_that_do() -> None:
    one, other = section_name("x" * 200), section_name("x" * 199)
    assert one != other
    assert len(one) < 64


def test_a_sitemap_is_valid_by_both_schemas() -> None:
    listed = [
        ListedCollection(
            head=head,
            url="https://hub.example/scp/x?a=1&b=2",
            expires=GENERATED,
            pages=1,
            size=100,
        )
        for head in (SNAPSHOT, DELTA)
    ]
    document = render_sitemap(
        sections=[ListedSection(name="all", pages=1)],
        collections=listed,
        pages=["https://hub.example/", "https://hub.example/a&b"],
        compression=["zstd", "gzip"],
        frequency="hourly",
    )
    assert faults_of_sitemap(document) == []
    assert b"<scp:compression>zstd,gzip</scp:compression>" in document


def test_a_sitemap_without_a_page_of_the_site_would_not_be() -> None:
    document = render_sitemap(
        sections=[], collections=[], pages=[], compression=["gzip"], frequency="daily"
    )
    assert faults_of_sitemap(document)


@pytest.mark.parametrize(
    ("seconds", "word"),
    [
        (60, "hourly"),
        (3_600, "hourly"),
        (7_200, "daily"),
        (86_401, "weekly"),
        (1e7, "monthly"),
    ],
)
def test_there_is_a_word_for_how_often(seconds: float, word: str) -> None:
    assert update_frequency(seconds) == word


def test_names_of_files_say_how_they_are_compressed() -> None:
    suffixes = [each.suffix for each in (Encoding.GZIP, Encoding.ZSTD, Encoding.PLAIN)]
    assert suffixes == [".scp.gz", ".scp.zst", ".scp"]
