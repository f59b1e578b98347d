"""Documents made of documents: cut, crossed, repeated, and filled with what hurts.

Pure: the same source of chance makes the same document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

LONGEST: Final = 64 * 1024
"""Bytes of a document: as many as the hub reads in its event loop."""
_MOST_STEPS: Final = 5
_JOINTS: Final = re.compile(rb"[<>{}\[\],:;&\"'=\n\r\0]")
_TOKENS: Final = (
    b"< > </ /> & &amp; &#0; &#xD800; &#x110000; &nbsp; &a; ]]> <![CDATA[ <!-- -->"
    b" <!DOCTYPE <!ENTITY <?xml <? ?> xmlns=\"\" xmlns:a='b' xml:base='//[' xml:lang=''"
    b" <item> </item> <entry> <outline> <link/> <div> <script> <base href='http://['>"
    b" \" ' { } [ ] , : null true NaN 1e999 -0 9999999999999999999 \\ud800 \\u0000 // #"
    b" http://[ http://a:99999/ //a\\@b javascript: data:, urn: %00 %ff %2f"
    b" \xef\xbb\xbf \xff\xfe \xff \xc3 \xed\xa0\x80 \xf0\x9f\x92\xa9"
    b" \x00 \x0c \x85 \xe2\x80\xa8 \x1f\x8b\x08 \x28\xb5\x2f\xfd"
    b" 0000-00-00 9999-12-31T23:59:60Z 31/02/2026 +9999  \r\n \n\n \t"
).split(b" ")
Mutation = Callable[[Random, bytes, Sequence[bytes]], bytes]


def mutate(random: Random, documents: Sequence[bytes]) -> bytes:
    """One of the documents after a few changes, some of which take from the others."""
    body = random.choice(documents)
    for _ in range(random.randint(1, _MOST_STEPS)):
        body = random.choice(_MUTATIONS)(random, body, documents)[:LONGEST]
    return body


def _cut_out(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, body)
    return body[:start] + body[end:]


def _cut_off(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    return body[: _place(random, body)]


def _insert(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(random, body)
    return body[:at] + random.choice(_TOKENS) + body[at:]


def _replace(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, body, longest=12)
    return body[:start] + random.choice(_TOKENS) + body[end:]


def _flip(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(body)
    for _ in range(random.randint(1, 8) if body else 0):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _repeat(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    """What is harmless once may take squared time a thousand times."""
    start, end = _span(random, body, longest=random.choice((4, 40, 400)))
    if start == end:
        return body
    times = random.choice((2, 10, 100, LONGEST // (end - start)))
    return body[:end] + body[start:end] * times + body[end:]


def _fill(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    """One token as often as there is room for it."""
    at, token = _place(random, body), random.choice(_TOKENS) or b"a"
    times = random.choice((20, 300, LONGEST // len(token)))
    return body[:at] + token * times + body[at:]


def _move(random: Random, body: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, body)
    rest = body[:start] + body[end:]
    at = _place(random, rest)
    return rest[:at] + body[start:end] + rest[at:]


def _cross(random: Random, body: bytes, documents: Sequence[bytes]) -> bytes:
    """The beginning of one and the end of another."""
    other = random.choice(documents)
    return body[: _place(random, body)] + other[_place(random, other) :]


def _transplant(random: Random, body: bytes, documents: Sequence[bytes]) -> bytes:
    other = random.choice(documents)
    start, end = _span(random, other, longest=2_000)
    at = _place(random, body)
    return body[:at] + other[start:end] + body[at:]


_MUTATIONS: Final[Sequence[Mutation]] = (
    _cut_out,
    _cut_off,
    _insert,
    _insert,
    _replace,
    _replace,
    _flip,
    _repeat,
    _fill,
    _move,
    _cross,
    _transplant,
)


def _place(random: Random, body: bytes) -> int:
    """Anywhere, or where something begins or ends."""
    at = random.randint(0, len(body))
    if random.random() < 0.3:
        return at
    joint = _JOINTS.search(body, at)
    return at if joint is None else joint.start() + random.randint(0, 1)


def _span(random: Random, body: bytes, longest: int = 4_000) -> tuple[int, int]:
    start = _place(random, body)
    return start, min(len(body), start + random.randint(0, longest))
