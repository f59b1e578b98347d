"""Collections as a crawler has to take them: each rule of the specification, and each
point in which its reference implementation does otherwise."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    InvalidDocument,
    LimitExceeded,
    MalformedDocument,
    UnsupportedVersion,
)
from protocols.scp.collection import CollectionType
from protocols.scp.read.collection_reader import page_url
from protocols.scp.read.unpacking import ChecksumRule, Checksums, SizeLimits
from tests.support.scp_files import (
    NOW,
    RULES,
    collection,
    head,
    in_pieces,
    lines,
    page,
    read,
)

TWO = collection(page(), page(url="https://example.com/b"))


def test_a_snapshot_is_its_head_and_its_pages() -> None:
    reader, pages = read(TWO)
    assert reader.head is not None
    assert reader.head.id == "all-1"
    assert reader.head.type is CollectionType.SNAPSHOT
    assert reader.head.generated == datetime(2026, 1, 2, tzinfo=UTC)
    assert [(each.line, each.url) for each in pages] == [
        (2, "https://example.com/a"),
        (3, "https://example.com/b"),
    ]
    assert pages[0].modified == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (reader.lines, reader.unknown, reader.warnings.count) == (2, 0, 0)
    assert reader.wire == reader.output == len(TWO)


def test_a_snapshot_may_be_empty() -> None:
    for data in (collection(), collection().rstrip()):
        reader, pages = read(data)
        assert reader.head is not None
        assert (reader.lines, pages) == (0, [])


def test_a_delta_says_since_when() -> None:
    reader, _ = read(collection(type="delta", since="2026-01-01T00:00:00Z"))
    assert reader.head is not None
    assert reader.head.since == datetime(2026, 1, 1, tzinfo=UTC)


# What other readers stumble over and this one does not.
ACCEPTED = [
    pytest.param(TWO, id="as the specification has it"),
    pytest.param(TWO.rstrip(), id="without a line feed at its end"),
    pytest.param(b"\xef\xbb\xbf" + TWO, id="with a byte order mark"),
    pytest.param(TWO.replace(b"\n", b"\r\n"), id="CRLF"),
    pytest.param(TWO.replace(b"\n", b"\n\n \n"), id="blank lines"),
    pytest.param(gzip.compress(TWO), id="gzip"),
    pytest.param(zstd.compress(TWO), id="zstd"),
    pytest.param(
        gzip.compress(TWO[:200]) + gzip.compress(TWO[200:]), id="multi-member gzip"
    ),
    pytest.param(
        zstd.compress(TWO[:200]) + zstd.compress(TWO[200:]), id="multi-frame zstd"
    ),
    pytest.param(TWO.replace(b'"0.1"', b'"0.9"'), id="a higher minor version"),
    pytest.param(TWO.replace(b'"id"', b'"new":1,"id"'), id="an unknown head member"),
    pytest.param(TWO.replace(b'"url"', b'"new":1,"url"'), id="an unknown page member"),
    pytest.param(TWO.replace(b'"text":', b'"n":1,"text":'), id="a block's new member"),
    pytest.param(TWO.replace(b'"en"', b'"zh-Hans-CN"'), id="a language with a script"),
    pytest.param(TWO.replace(b'"en"', b'"fil"'), id="a language of three letters"),
]


@pytest.mark.parametrize("data", ACCEPTED)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_what_may_differ_makes_no_difference(data: bytes, step: int) -> None:
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    reader, pages = read(pieces)
    assert [each.url[-1] for each in pages] == ["a", "b"]
    assert reader.warnings.count == 0
    assert reader.lines == 2


def without(*names: str) -> dict[str, Any]:
    return page(**dict.fromkeys(names))


REFUSED = [
    (b"", EmptyDocument, "the document is empty"),
    (b"\xef\xbb\xbf", InvalidDocument, "line 1: expected the collection"),
    (gzip.compress(b""), EmptyDocument, "the document is empty"),
    (
        gzip.compress(b"\n") + gzip.compress(TWO),
        InvalidDocument,
        "line 1: expected the collection",
    ),
    (b"\n" + TWO, InvalidDocument, "line 1: expected the collection"),
    (b"<html>\n", MalformedDocument, "line 1: "),
    (b"[]\n", InvalidDocument, "line 1: /collection: expected an object"),
    (lines(page()), InvalidDocument, "line 1: /collection: expected an object"),
    (TWO + b"{broken\n", MalformedDocument, "line 4: "),
    (TWO + b"[]", InvalidDocument, "line 4: expected an object"),
    (collection(page(), without("url")), InvalidDocument, "line 3: /url: "),
    (collection(without("title")), InvalidDocument, "line 2: /title: expected a text"),
    (collection(without("description")), InvalidDocument, "/description: "),
    (collection(without("modified")), InvalidDocument, "/modified: expected a text"),
    (collection(without("language")), InvalidDocument, "/language: expected a text"),
    (collection(without("content")), InvalidDocument, "/content: expected an array"),
    (collection(page(title=7)), InvalidDocument, "/title: expected a text"),
    (collection(page(content="x")), InvalidDocument, "/content: expected an array"),
    (gzip.compress(TWO)[:-9], MalformedDocument, "the compressed file ends early"),
    (gzip.compress(TWO) + b"x", MalformedDocument, "something follows"),
    (collection(version="1.0"), UnsupportedVersion, "version 1.0 of SCP is not"),
    (collection(version="9.9", type=None), UnsupportedVersion, "version 9.9 of SCP"),
    (collection(version="0.1.2"), InvalidDocument, "/version: expected a version"),
    (collection(version=0.1), InvalidDocument, "/version: expected a version"),
    (collection(id="a.b"), InvalidDocument, "/collection/id: expected letters"),
    (collection(section="a b"), InvalidDocument, "/collection/section: expected"),
    (collection(type="full"), InvalidDocument, "/collection/type: expected snapshot"),
    (collection(generated="soon"), InvalidDocument, "/generated: expected an ISO"),
    (collection(type="delta"), InvalidDocument, "/collection/since: expected an ISO"),
    (
        collection(generated="2026-01-05T00:00:00Z"),
        InvalidDocument,
        "/collection/generated: lies in the future",
    ),
    (
        collection(generated="2005-01-05T00:00:00Z"),
        InvalidDocument,
        "/collection/generated: is more than 3650 days ago",
    ),
    (collection(checksum="sha256:" + 66 * "a"), InvalidDocument, "/checksum: expected"),
    (collection(checksum=""), InvalidDocument, "/collection/checksum: expected sha256"),
]


@pytest.mark.parametrize(("data", "error", "message"), REFUSED)
def test_what_makes_a_file_unusable(
    data: bytes, error: type[FeedError], message: str
) -> None:
    with pytest.raises(error) as caught:
        read(data)
    assert message in str(caught.value)


LEFT_OUT = [
    (page(url="ftp://example.com/"), "line 2: /url: expected an http or https URL"),
    (page(url="javascript:alert(1)"), "line 2: /url: expected an http or https URL"),
    (page(url="https://"), "line 2: /url: expected an http or https URL"),
    (page(modified="yesterday"), "line 2: /modified: expected an ISO 8601 time"),
    (page(content=[{"type": "text"}] * 1_001), "line 2: /content: more than 1000"),
    (page(description="x" * 2_000), "line 2: /: longer than 2000 bytes"),
]


@pytest.mark.parametrize(("bad", "warning"), LEFT_OUT)
def test_what_costs_a_page_only(bad: dict[str, Any], warning: str) -> None:
    size = 50_000 if "/content" in warning else 2_000
    data = collection(bad, page(url="https://example.com/b"))
    reader, pages = read(data, limits=SizeLimits(line=size))
    assert [each.url for each in pages] == ["https://example.com/b"]
    assert reader.warnings.lines == [f"{warning}; left out"] or (
        reader.warnings.lines[0].startswith(warning)
    )
    assert reader.lines == 2
    assert reader.unknown == ("longer than" in warning)


def test_a_line_that_never_ends_is_never_held() -> None:
    data = TWO + b'{"a":"' + bytes(3_000_000)
    pieces = [data[at : at + 50_000] for at in range(0, len(data), 50_000)]
    reader, pages = read(pieces, limits=SizeLimits(line=1_000))
    assert (len(pages), reader.unknown) == (2, 1)
    with pytest.raises(LimitExceeded, match="the first line's size"):
        read([b'{"a":"', bytes(3_000_000)], limits=SizeLimits(line=1_000))
    with pytest.raises(LimitExceeded, match="the first line's size"):
        read(b'{"a":"' + bytes(3_000) + b"\n", limits=SizeLimits(line=1_000))


def test_warnings_are_counted_and_the_first_kept() -> None:
    reader, _ = read(collection(*[page(url="x")] * 100))
    assert reader.warnings.count == 100
    assert len(reader.warnings.lines) == 20


def test_a_bomb_is_refused() -> None:
    bomb = gzip.compress(TWO + b" " * 30_000_000)
    with pytest.raises(LimitExceeded, match="ratio of unpacked to sent bytes"):
        read(bomb)


# --- the checksum, whose rule nobody can follow ---

PAGES = lines(page(), page(url="https://example.com/b"))
MEMBER = ',"checksum":"sha256:%b"'


def with_checksum(preimage: bytes, line: bytes, pages: bytes = PAGES) -> bytes:
    """``line`` has ``HASH`` where the hash of the preimage is to stand."""
    digest = hashlib.sha256(preimage).hexdigest().encode()
    return line.replace(b"HASH", digest) + pages


FIRST = orjson.dumps(head())
LAST_MEMBER = FIRST[:-2] + b',"checksum":"sha256:HASH"}}\n'
FIRST_MEMBER = FIRST.replace(b'{"id"', b'{"checksum": "sha256:HASH", "id"') + b"\n"
CLAIMS = {
    "without the member, which comes last": with_checksum(
        FIRST + b"\n" + PAGES, LAST_MEMBER
    ),
    "without the member, which comes first": with_checksum(
        FIRST + b"\n" + PAGES, FIRST_MEMBER
    ),
    "without a line feed at the end": with_checksum(
        (FIRST + b"\n" + PAGES).rstrip(), LAST_MEMBER, PAGES.rstrip()
    ),
    "without the member, its comma and the blanks round it": with_checksum(
        FIRST[:-2] + b" }}\n" + PAGES,
        FIRST[:-2] + b' \t, "checksum" : "sha256:HASH" }}\n',
    ),
    "with an empty value": with_checksum(
        LAST_MEMBER.replace(b"sha256:HASH", b"") + PAGES, LAST_MEMBER
    ),
    "the pages only": with_checksum(PAGES, LAST_MEMBER),
    "in capitals": with_checksum(PAGES, LAST_MEMBER).replace(
        hashlib.sha256(PAGES).hexdigest().encode(),
        hashlib.sha256(PAGES).hexdigest().upper().encode(),
    ),
}


@pytest.mark.parametrize("way", CLAIMS)
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"]
)
def test_a_checksum_is_taken_in_any_of_the_ways_it_is_made(way: str, pack: Any) -> None:
    _, pages = read(pack(CLAIMS[way]))
    assert len(pages) == 2


@pytest.mark.parametrize("way", CLAIMS)
def test_strictly_none_of_them_is_right(way: str) -> None:
    with pytest.raises(InvalidDocument, match="the file has another checksum"):
        read(CLAIMS[way], replace(RULES, checksum=ChecksumRule.STRICT))


def test_a_file_that_was_changed_is_refused_unless_nobody_looks() -> None:
    changed = CLAIMS["the pages only"].replace(b"Words", b"Swords")
    for rule in (ChecksumRule.LENIENT, ChecksumRule.STRICT):
        with pytest.raises(InvalidDocument, match="line 1: /collection/checksum"):
            read(changed, replace(RULES, checksum=rule))
    _, pages = read(changed, replace(RULES, checksum=ChecksumRule.OFF))
    assert len(pages) == 2


@pytest.mark.parametrize("end", ["", MEMBER.replace("%b", 64 * "a")])
def test_a_first_line_full_of_blanks_is_gone_through_once(end: str) -> None:
    """With the square of their number this would not end today."""
    blanks = b" " * 1_000_000
    line = b'{"collection":{"id":"a"' + blanks + end.encode() + b"}}\n"
    checksums = Checksums("sha256:" + 64 * "a", line, ChecksumRule.LENIENT)
    with pytest.raises(InvalidDocument, match="the file has another checksum"):
        checksums.verify()


def test_how_old_and_how_early_is_for_the_rules_to_say() -> None:
    rules = replace(RULES, oldest=timedelta(hours=1))
    with pytest.raises(InvalidDocument, match="is more than 0 days ago"):
        read(TWO, rules)
    read(TWO, replace(RULES, now=NOW - timedelta(days=1)))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com/a", "https://example.com/a"),
        ("HTTP://example.com", "HTTP://example.com"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://exämple.com/", "https://exämple.com/"),
        ("https://example.com:8080?q", "https://example.com:8080?q"),
        ("https:///path", ""),
        ("http://example.com:999999/", ""),
        ("http://[::1", ""),
        ("//example.com/", ""),
        ("mailto:a@b", ""),
        ("", ""),
    ],
)
def test_addresses_of_pages_are_those_of_the_web(text: str, url: str) -> None:
    assert page_url(text) == url


_DOCUMENTS = [TWO, gzip.compress(TWO), zstd.compress(TWO), *CLAIMS.values()]


@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda tail: TWO + tail),
        st.tuples(
            st.sampled_from(_DOCUMENTS), st.integers(0, 900), st.binary(max_size=6)
        ).map(lambda all: all[0][: all[1]] + all[2] + all[0][all[1] + len(all[2]) :]),
    ),
    st.lists(st.integers(0, 900), max_size=6),
)
def test_the_pieces_change_nothing_and_nothing_else_is_raised(
    data: bytes, cuts: list[int]
) -> None:
    assert outcome([data]) == outcome(in_pieces(data, cuts))


def outcome(pieces: list[bytes]) -> object:
    try:
        reader, pages = read(pieces)
    except FeedError as error:
        return str(error)
    return reader.lines, reader.warnings.lines, pages


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "url", "href", "name", "icon", "level"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*page(), "x"]), _VALUES), _VALUES)
def test_any_json_can_be_read_or_is_refused(
    changes: dict[str, Any], changed: Any
) -> None:
    outcome([collection({**page(), **changes}, changed)])
    outcome([lines({"collection": changed}), lines({"collection": changes})])
