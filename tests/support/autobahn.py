"""Cases of the Autobahn test suite, for a server that echoes nothing.

An echo is here the answer to a message that has an id: ``echo("x")`` asks the hub to
leave a topic that nobody listens to, and the answer names the id. Numbers and
sentences are those of the suite; the frames are made anew from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from tests.support.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    frame,
)

NORMAL, PROTOCOL, NOT_TEXT, NOT_UTF_8, TOO_LARGE = 1000, 1002, 1003, 1007, 1009
LARGEST = 64 * 1024
TOPIC = "https://nobody.example/feed"


@dataclass(frozen=True, slots=True)
class Case:
    """Frames, sent in pieces of ``chop`` bytes if there is one, and what comes of it.

    ``answers``: ids that are echoed and payloads of pongs, in order. ``code``: with
    which the hub closes the connection; None: it does not. What came before a
    breach of the rules may be answered or not (the suite calls both right).
    """

    sentence: str
    frames: tuple[bytes, ...]
    answers: tuple[str | bytes, ...] = ()
    code: int | None = None
    chop: int = 0


def echo(id: str | bytes, size: int = 0) -> bytes:
    """A message whose answer has the id, padded to a size."""
    raw = id.encode() if isinstance(id, str) else id
    head = orjson.dumps({"type": "unsubscribe", "topic": TOPIC})[:-1]
    return (head + b',"id":"' + raw + b'"}').ljust(size)


def halves(id: str) -> tuple[bytes, bytes]:
    whole = echo(id)
    return whole[:20], whole[20:]


def fragments(first: bytes, *others: bytes) -> list[bytes]:
    """A text of several frames."""
    *middle, last = others
    return [
        frame(TEXT, first, is_final=False),
        *(frame(CONTINUATION, each, is_final=False) for each in middle),
        frame(CONTINUATION, last),
    ]


def _framing() -> Iterator[tuple[str, Case]]:
    sizes = (125, 126, 127, 128, 65_535, 65_536)
    yield "1.1.1", Case("a text of no bytes is a message", (frame(TEXT),), ("",))
    for number, size in enumerate(sizes, 2):
        message = frame(TEXT, echo("x", size))
        yield f"1.1.{number}", Case(f"a text of {size} bytes", (message,), ("x",))
    yield (
        "1.1.8",
        Case("65,536 bytes in chops of 997", (message,), ("x",), chop=997),
    )
    for number, size in enumerate((0, *sizes), 1):
        yield (
            f"1.2.{number}",
            Case(
                f"{size} bytes that are no text are refused",
                (frame(BINARY, bytes(size)),),
                code=NOT_TEXT,
            ),
        )
    yield (
        "1.2.8",
        Case(
            "65,536 bytes in chops of 997 that are no text are refused",
            (frame(BINARY, bytes(65_536)),),
            code=NOT_TEXT,
            chop=997,
        ),
    )


def _pings() -> Iterator[tuple[str, Case]]:
    small, binary, large = b"Hello, world!", bytes(range(256))[-125:], b"\xfe" * 125
    for number, payload in enumerate((b"", small, binary, large), 1):
        case = Case("a ping is answered alike", (frame(PING, payload),), (payload,))
        yield f"2.{number}", case
    too_long = frame(PING, b"\xfe" * 126)
    yield "2.5", Case("a ping of 126 bytes", (too_long,), code=PROTOCOL)
    yield "2.6", Case("a ping in chops", (frame(PING, large),), (large,), chop=1)
    unasked = (frame(PONG), frame(PONG, b"unsolicited pong payload"))
    yield "2.7", Case("a pong that nobody asked for", unasked[:1])
    yield "2.8", Case("a pong that nobody asked for, with bytes", unasked[1:])
    both = (unasked[1], frame(PING, b"ping"))
    yield "2.9", Case("a pong that nobody asked for, then a ping", both, (b"ping",))
    many = tuple(b"payload-%d" % number for number in range(10))
    pings = tuple(frame(PING, each) for each in many)
    yield "2.10", Case("ten pings", pings, many)
    yield "2.11", Case("ten pings in chops", pings, many, chop=1)


def _reserved() -> Iterator[tuple[str, Case]]:
    hello, ping = frame(TEXT, echo("hello")), frame(PING)

    def text(rsv: int) -> bytes:
        return frame(TEXT, echo("reserved"), rsv=rsv)

    cases = [
        Case("RSV 1 in a text", (text(1),), code=PROTOCOL),
        Case("RSV 2 after a text", (hello, text(2), ping), code=PROTOCOL),
        Case("RSV 3, frame by frame", (hello, text(3), ping), code=PROTOCOL),
        Case("RSV 4, in chops", (hello, text(4), ping), code=PROTOCOL, chop=1),
        Case("RSV 5 in bytes", (frame(BINARY, bytes(9), rsv=5),), code=PROTOCOL),
        Case("RSV 6 in a ping", (frame(PING, b"x", rsv=6),), code=PROTOCOL),
        Case("RSV 7 in a close", (frame(CLOSE, rsv=7),), code=PROTOCOL),
    ]
    yield from ((f"3.{number}", case) for number, case in enumerate(cases, 1))


def _opcodes() -> Iterator[tuple[str, Case]]:
    hello, ping = frame(TEXT, echo("hello")), frame(PING)
    for group, first in ((1, 3), (2, 11)):
        for number, opcode in enumerate(range(first, first + 5), 1):
            unknown = frame(opcode, b"" if number in (1, 3) else b"reserved opcode")
            frames = (unknown,) if number < 3 else (hello, unknown, ping)
            case = Case(f"opcode {opcode}", frames, code=PROTOCOL)
            if number == 5:
                case = Case(f"opcode {opcode} in chops", frames, (), PROTOCOL, chop=1)
            yield f"4.{group}.{number}", case


def _fragmentation() -> Iterator[tuple[str, Case]]:
    for number, opcode in enumerate((PING, PONG), 1):
        pieces = (frame(opcode, b"fra", is_final=False), frame(CONTINUATION, b"gment"))
        yield f"5.{number}", Case("a control frame in two", pieces, code=PROTOCOL)
    two = tuple(fragments(*halves("two")))
    between = (two[0], frame(PING, b"ping"), two[1])
    ways = (("at once", 0), ("frame by frame", 997), ("in chops", 1))
    for number, (way, chop) in enumerate(ways, 3):
        yield f"5.{number}", Case(f"a text in two, {way}", two, ("two",), chop=chop)
    for number, (way, chop) in enumerate(ways, 6):
        case = Case(f"a ping in a text, {way}", between, (b"ping", "two"), chop=chop)
        yield f"5.{number}", case
    hello = frame(TEXT, echo("hello"))
    for number, (way, chop) in enumerate(ways * 2, 9):
        alone = frame(CONTINUATION, b"non-continuation payload", is_final=number < 12)
        sentence = f"nothing to continue (FIN {number < 12}), {way}"
        yield f"5.{number}", Case(sentence, (alone, hello), (), PROTOCOL, chop)
    more = frame(CONTINUATION, b"fragment", is_final=False)
    yield "5.15", Case("more than a text", (*two, more, hello), code=PROTOCOL)
    for number, is_final in ((16, False), (17, True)):
        alone = frame(CONTINUATION, b"fragment", is_final=is_final)
        sentence = f"nothing to continue, twice (FIN {is_final})"
        yield f"5.{number}", Case(sentence, (alone, *two) * 2, code=PROTOCOL)
    texts = (frame(TEXT, b"frag", is_final=False), frame(TEXT, b"ment"))
    yield "5.18", Case("a text in a text", texts, code=PROTOCOL)
    whole = echo("five")
    five = fragments(*(whole[at : at + 20] for at in range(0, 80, 20)), whole[80:])
    pinged = (*five[:2], frame(PING, b"1"), *five[2:4], frame(PING, b"2"), five[4])
    answers = (b"1", b"2", "five")
    yield "5.19", Case("five, with pings between", pinged, answers)
    yield (
        "5.20",
        Case("five, with pings between, frame by frame", pinged, answers, chop=99),
    )


def _closing() -> Iterator[tuple[str, Case]]:
    close, ping = frame(CLOSE, NORMAL.to_bytes(2)), frame(PING, b"late")
    first, second = fragments(*halves("late"))
    hello = frame(TEXT, echo("late"))
    same = {"code": NORMAL}
    yield "7.1.1", Case("a text, then a close", (hello, close), **same)
    yield "7.1.2", Case("two closes have one answer", (close, close), **same)
    yield "7.1.3", Case("no ping counts after a close", (close, ping), **same)
    yield "7.1.4", Case("no text counts after a close", (close, hello), **same)
    yield "7.1.5", Case("a close in a text ends it", (first, close, second), **same)
    large = frame(TEXT, echo("large", 256 * 1024))
    yield (
        "7.1.6",
        Case("256 kB, too many, then a close", (large, close, ping), (), TOO_LARGE),
    )
    code, reason = NORMAL.to_bytes(2), b"*" * 123
    for number, (payload, told) in enumerate(
        (
            (b"", 0),
            (b"a", PROTOCOL),
            (code, NORMAL),
            (code + b"Hello World!", NORMAL),
            (code + reason, NORMAL),
            (code + reason + b"*", PROTOCOL),
        ),
        1,
    ):
        case = Case(
            f"a close of {len(payload)} bytes", (frame(CLOSE, payload),), (), told
        )
        yield f"7.3.{number}", case
    broken = "κόσμε".encode() + b"\xed\xa0\x80edited"
    yield (
        "7.5.1",
        Case(
            "a reason that is not UTF-8", (frame(CLOSE, code + broken),), (), NOT_UTF_8
        ),
    )
    valid = (
        1000,
        1001,
        1002,
        1003,
        1007,
        1008,
        1009,
        1010,
        1011,
        3000,
        3999,
        4000,
        4999,
    )
    invalid = (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999)
    for number, each in enumerate(valid, 1):
        case = Case(f"the code {each}", (frame(CLOSE, each.to_bytes(2)),), (), each)
        yield f"7.7.{number}", case
    for number, each in enumerate(invalid, 1):
        case = Case(f"the code {each}", (frame(CLOSE, each.to_bytes(2)),), (), PROTOCOL)
        yield f"7.9.{number}", case
    for number, each in enumerate((5000, 65535), 1):  # the suite has no verdict on them
        case = Case(f"the code {each}", (frame(CLOSE, each.to_bytes(2)),), (), PROTOCOL)
        yield f"7.13.{number}", case


CASES: dict[str, Case] = {
    number: case
    for group in (
        _framing,
        _pings,
        _reserved,
        _opcodes,
        _fragmentation,
        _closing,
    )
    for number, case in group()
}
"""By the suite's number."""
