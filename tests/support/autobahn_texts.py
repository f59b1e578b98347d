"""Cases 6 of the Autobahn suite: what is UTF-8, however it is cut up, and what is not.

The sequences of 6.5 and on are those of Markus Kuhn's "UTF-8 decoder capability and
stress test", which everybody tests with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.support.autobahn import NOT_UTF_8, Case, echo, fragments
from tests.support.raw_websocket import CONTINUATION, TEXT, frame

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
"""By the second number. In 6.6, of all beginnings of one text, most are cut off."""


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
    """The rest of the text never comes: it must be closed all the same."""
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
            # JSON has no NUL; to be told so is an answer as well.
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
"""By the suite's number; of 6.6 the valid ones come first."""
