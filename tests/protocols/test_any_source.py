"""No bytes, however near to a real document, make a reader raise anything but its own
error."""

from __future__ import annotations

import gzip
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import parse
from protocols.openfeeder.read.site_answers import load_loosely
from protocols.protocol_errors import FeedError
from tests.support.golden import CONTEXT, DATA, OTHERS

DOCUMENTS = {path: (DATA / path).read_bytes() for path in OTHERS}
DOCUMENTS["creator"] = (DATA / "creator" / "complete.feed.json").read_bytes()
DOCUMENTS["jsonfeed"] = (DATA / "jsonfeed" / "everything.feed.json").read_bytes()
VALUES = st.sampled_from(
    [
        *(
            b"null",
            b"true",
            b"-1",
            b"1e999",
            b"1e-5",
            b"{}",
            b"[]",
            b'""',
            b'"\\ud800"',
        ),
        *(b"9" * 400, b"NaN", b"\xff", b"\0", b"<!DOCTYPE x>", b"&#0;", b"]]>", b"\n"),
        *(b'"2026-13-45T25:61:61Z"', b'"0001-01-01T00:00:00+23:59"', b'"http://[::1"'),
        *(b'"0001-01-01T00:00:00Z"', b'"9999-12-31T23:59:59-12:00"'),
    ]
)


@st.composite
def near_documents(draw: st.DrawFn) -> tuple[str, bytes]:
    """A document in some places of which something else stands."""
    path = draw(st.sampled_from(sorted(DOCUMENTS)))
    body = DOCUMENTS[path]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 40)))
        piece = draw(VALUES | st.binary(max_size=8))
        body = body[:start] + piece + body[end:]
    return path, body


@st.composite
def other_values(draw: st.DrawFn) -> tuple[str, bytes]:
    """A document of which one value, as it is written, is another."""
    path = draw(st.sampled_from(sorted(DOCUMENTS)))
    body = DOCUMENTS[path]
    places = [at for at, byte in enumerate(body) if byte in b':,[="']
    start = draw(st.sampled_from(places)) + 1
    ends = [
        at for at in (body.find(end, start) for end in (b",", b'"', b"}")) if at > 0
    ]
    end = draw(st.sampled_from(ends or [len(body)]))
    return path, body[:start] + draw(VALUES) + body[end:]


@given(near_documents() | other_values())
def test_whatever_is_answered_is_read_or_is_an_error_of_ours(
    document: tuple[str, bytes],
) -> None:
    path, body = document
    with suppress(FeedError):
        OTHERS.get(path, load_loosely)(body)
    for whole in (body, gzip.compress(body, 1)):
        with suppress(FeedError):
            parse(whole, CONTEXT)
