"""Cases of the Autobahn test suite, for a server that echoes nothing.

The answer to a message that has an id stands for an echo: ``echo("x")`` asks the hub to
leave a topic that nobody listens to, and the answer names the id. Numbers and sentences
are those of the suite; the frames are made anew from them. The sequences of 6.5 and on
are those of Markus Kuhn's "UTF-8 decoder capability and stress test". Cases 9 and 10
are for a server that takes 64 KiB at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """Frames, sent in pieces of ``chop`` bytes (0: whole), and what comes of them.

    ``answers``: ids that are echoed and payloads of pongs, in order. ``code``: the one
    with which the hub closes the connection; None: it does not. What came before a
    breach of the rules may be answered or not (the suite accepts both).
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
    yield "7.1.1", Case("a text, then a close", (hello, close), code=NORMAL)
    yield "7.1.2", Case("two closes have one answer", (close, close), code=NORMAL)
    yield "7.1.3", Case("no ping counts after a close", (close, ping), code=NORMAL)
    yield "7.1.4", Case("no text counts after a close", (close, hello), code=NORMAL)
    yield (
        "7.1.5",
        Case("a close in a text ends it", (first, close, second), code=NORMAL),
    )
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
"""Cases by the suite's number."""


_GREEK = bytes.fromhex("cebae1bdb9cf83cebcceb5")  # "kosme", with an oxia
_HELLO = "Hello-µ@ßöäüàá-UTF-8!!"
_CUT_OFF = (
    b"\xc0",
    b"\xe0\x80",
    b"\xf0\x80\x80",
    b"\xf8\x80\x80\x80",
    b"\xfc\x80\x80\x80\x80",
    b"\xdf",
    b"\xef\xbf",
    b"\xf7\xbf\xbf",
    b"\xfb\xbf\xbf\xbf",
    b"\xfd\xbf\xbf\xbf\xbf",
)
_SURROGATES = [bytes.fromhex(f"ed{each}") for each in ["a080", "adbf", "ae80", "afbf"]]
_LOW = [bytes.fromhex(f"ed{each}") for each in ["b080", "be80", "bfbf"]]
_NONCHARACTERS = [
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
]

VALID: dict[int, Sequence[bytes]] = {
    5: [f"hello{each}world".encode() for each in "$¢€𤭢"] + [_GREEK],
    6: [_GREEK[:2], _GREEK[:5], _GREEK[:7], _GREEK[:9], _GREEK],
    7: [b"\0", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"],
    9: [b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"],
    11: [b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf"],
    22: [each.encode() for each in _NONCHARACTERS],
    23: [chr(each).encode() for each in range(0xFFF9, 0x10000)],
}
INVALID: dict[int, Sequence[bytes]] = {
    6: [_GREEK[:size] for size in range(1, 11) if size not in (2, 5, 7, 9)],
    8: [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    10: [b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"],
    11: [b"\xf4\x90\x80\x80"],
    12: [
        b"\x80",
        b"\xbf",
        *((b"\x80\xbf" * 3)[:size] for size in range(2, 7)),
        bytes(range(0x80, 0xBF)),
    ],
    13: [
        b"".join(bytes((each, 0x20)) for each in range(first, last))
        for first, last in (
            (0xC0, 0xDF),
            (0xE0, 0xEF),
            (0xF0, 0xF7),
            (0xF8, 0xFB),
            (0xFC, 0xFD),
        )
    ],
    14: _CUT_OFF,
    15: [b"".join(_CUT_OFF)],
    16: [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    17: [
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf8\x80\x80\x80\xaf",
        b"\xfc\x80\x80\x80\x80\xaf",
    ],
    18: [
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf8\x87\xbf\xbf\xbf",
        b"\xfc\x83\xbf\xbf\xbf\xbf",
    ],
    19: [
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xf8\x80\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80\x80",
    ],
    20: [*_SURROGATES, *_LOW],
    21: [high + low for high in _SURROGATES for low in (_LOW[0], _LOW[2])],
}
"""Invalid sequences by the second number; of 6.6 some beginnings of one text."""


def _cut_up() -> Iterator[tuple[str, Case]]:
    middle = echo("middle payload")
    yield "6.1.1", Case("a text of no bytes", (frame(TEXT),), ("",))
    yield "6.1.2", Case("three empty fragments", tuple(fragments(b"", b"", b"")), ("",))
    ends = tuple(fragments(b"", middle, b""))
    yield "6.1.3", Case("empty ones at both ends", ends, ("middle payload",))
    whole = echo(_HELLO)
    at = whole.index("ß".encode())
    yield "6.2.1", Case("in one", (frame(TEXT, whole),), (_HELLO,))
    halves = tuple(fragments(whole[:at], whole[at:]))
    yield "6.2.2", Case("in two, at a code point", halves, (_HELLO,))
    yield "6.2.3", Case("octet by octet", _octets(whole), (_HELLO,))
    yield "6.2.4", Case("Greek, by octets", _octets(echo(_GREEK)), (_GREEK.decode(),))
    broken = _GREEK + b"\xed\xa0\x80edited"
    yield "6.3.1", Case("a surrogate, in one", (frame(TEXT, broken),), (), NOT_UTF_8)
    yield "6.3.2", Case("a surrogate, by octets", _octets(broken), (), NOT_UTF_8)


def _octets(whole: bytes) -> tuple[bytes, ...]:
    return tuple(fragments(*(whole[at : at + 1] for at in range(len(whole)))))


def _fail_fast() -> Iterator[tuple[str, Case]]:
    """Cases whose text never ends: the hub must close the connection all the same."""
    start = frame(TEXT, _GREEK, is_final=False)
    beyond = frame(CONTINUATION, b"\xf4\x90\x80\x80", is_final=False)
    yield "6.4.1", Case("beyond Unicode, at once", (start, beyond), (), NOT_UTF_8)
    begun = frame(TEXT, _GREEK + b"\xf4", is_final=False)
    going = frame(CONTINUATION, b"\x90", is_final=False)
    yield "6.4.2", Case("in its second octet", (begun, going), (), NOT_UTF_8)
    whole = frame(TEXT, _GREEK + b"\xf4\x90\x80\x80edited")
    for number in (3, 4):
        yield (
            f"6.4.{number}",
            Case("within a frame", (whole,), (), NOT_UTF_8, chop=number),
        )


def _sequences() -> Iterator[tuple[str, Case]]:
    for group, texts in VALID.items():
        for number, text in enumerate(texts, 1):
            # JSON has no NUL; the error that says so is an answer as well.
            answer = "" if text == b"\0" else text.decode()
            case = Case(f"valid {text.hex()}", (frame(TEXT, echo(text)),), (answer,))
            yield f"6.{group}.{number}", case
    for group, texts in INVALID.items():
        first = len(VALID.get(group, ())) + 1
        for number, text in enumerate(texts, first):
            case = Case(f"invalid {text.hex()}", (frame(TEXT, text),), (), NOT_UTF_8)
            yield f"6.{group}.{number}", case


TEXT_CASES: dict[str, Case] = {
    number: case
    for group in (_cut_up, _fail_fast, _sequences)
    for number, case in group()
}
"""Cases by the suite's number; of 6.6 the valid ones come first."""


def _claimed(opcode: int, size: int) -> bytes:
    """The beginning of a frame that is too large: more of it is never read."""
    return frame(opcode, echo("x", 4_096), length=size)


def _limits() -> Iterator[tuple[str, Case]]:
    whole = echo("x", LARGEST)
    yield "9.1.1", Case("a text of 64 KiB", (frame(TEXT, whole),), ("x",))
    yield "9.2.1", Case("64 KiB of bytes", (frame(BINARY, whole),), (), NOT_TEXT)
    for number, size in enumerate((256, 1024, 4096, 8192, 16384), 2):
        for group, opcode in ((1, TEXT), (2, BINARY)):
            begun = (_claimed(opcode, size * 1024),)
            yield f"9.{group}.{number}", Case(f"{size} KiB", begun, (), TOO_LARGE)
    for group, opcode in ((3, TEXT), (4, BINARY)):
        for number, size in enumerate((64 * 4**power for power in range(9)), 1):
            frames: tuple[bytes, ...] = (_claimed(opcode, size),)
            if size <= LARGEST:
                start = frame(opcode, bytes(size), is_final=False)
                more = frame(CONTINUATION, bytes(size), is_final=False)
                frames = (start, *[more] * (2 * LARGEST // size))
            case = Case(f"4 MiB in frames of {size}", frames, (), TOO_LARGE)
            yield f"9.{group}.{number}", case
    for group, opcode in ((5, TEXT), (6, BINARY)):
        for number, chop in enumerate((64, 128, 256, 512, 1024, 2048), 1):
            begun = (_claimed(opcode, 2**20),)
            case = Case(f"1 MiB in chops of {chop}", begun, (), TOO_LARGE, chop)
            yield f"9.{group}.{number}", case
    several = [f"{number}" for number in range(100)]
    for number, size in enumerate((0, 16, 64, 256, 1024, 4096), 1):
        messages = tuple(frame(TEXT, echo(each, size)) for each in several)
        sentence = f"a hundred texts of {size} bytes or more"
        yield f"9.7.{number}", Case(sentence, messages, tuple(several))
        case = Case(f"{size} bytes", (frame(BINARY, bytes(size)),) * 9, (), NOT_TEXT)
        yield f"9.8.{number}", case
    pieces = [whole[at : at + 1300] for at in range(0, LARGEST, 1300)]
    yield (
        "10.1.1",
        Case("65,536 bytes in frames of 1,300", tuple(fragments(*pieces)), ("x",)),
    )


LIMIT_CASES: dict[str, Case] = dict(_limits())
"""Cases by the suite's number."""
