"""Cases 9 and 10 of the Autobahn suite, for a server that takes 64 KiB at most."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.autobahn import (
    LARGEST,
    NOT_TEXT,
    TOO_LARGE,
    Case,
    echo,
    fragments,
)
from tests.support.raw_websocket import BINARY, CONTINUATION, TEXT, frame


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
            frames = (_claimed(opcode, size),)
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
"""By the suite's number."""
