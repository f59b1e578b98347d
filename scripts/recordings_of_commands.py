"""``scripts/recordings``: what the lines of the tutorials print in a terminal, as
pictures for ``docs/images``.

They are typed as the tutorials have them, against a hub of their own; its address and
the feed's are drawn as the tutorials name them.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import pty
import struct
import sys
import tempfile
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from scripts.terminal_drawing import COLUMNS, draw_terminal, read_terminal
from tests.support.first_tutorial import (
    PING,
    PUBLISH_LIVE,
    TUTORIALS,
    make_later,
    open_first_tutorial,
    shell_lines,
)
from tests.support.typed_examples import Reader

ROWS: Final = 40
_PROMPT: Final = "\x1b[1;32m$\x1b[m "
_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    name: str
    title: str
    lines: tuple[str, ...]


def recordings() -> list[Recording]:
    *_, check = shell_lines((TUTORIALS / "websub-hub.md").read_text())
    return [
        Recording(
            name="demo",
            title="fanfare demo: entries arrive by webhook, websocket and event stream",
            lines=("fanfare demo --seconds 4\n",),
        ),
        Recording(
            name="first-steps",
            title="An entry is published, the hub is told, and the feed's polls",
            lines=(
                "fanfare feeds list\n",
                PUBLISH_LIVE,
                PING,
                "fanfare feeds history 1\n",
            ),
        ),
        Recording(
            name="playground",
            title="fanfare playground try: the steps of WebSub, and what is right",
            lines=tuple(check.splitlines(keepends=True)),
        ),
    ]


async def record(reader: Reader, recording: Recording) -> str:
    """The SVG document of what its lines print."""
    began, written = monotonic(), list[tuple[float, str]]()
    for line in recording.lines:
        written.append((monotonic() - began, _PROMPT + line))
        await _type(reader, line, began, written)
        make_later(reader)
    text = [(at, _as_named(reader, text)) for at, text in written]
    return draw_terminal(read_terminal(text), recording.title)


async def _type(
    reader: Reader, line: str, began: float, written: list[tuple[float, str]]
) -> None:
    """Run it in a terminal; note what is written there, and when."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
    process = await reader.start(
        "sh", "-e", "-c", reader.place(line), output=theirs, TERM="xterm-256color"
    )
    os.close(theirs)
    loop = asyncio.get_running_loop()
    while piece := await loop.run_in_executor(None, _read, ours):
        written.append((monotonic() - began, piece.decode(errors="replace")))
    os.close(ours)
    if await process.wait():
        raise RuntimeError(f"{line.strip()}: {written[-1][1]}")
    if not written[-1][1].endswith("\n"):
        written.append((monotonic() - began, "\n"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, _PIECE)
    except OSError:
        return b""  # nobody has its other end any more


def _as_named(reader: Reader, text: str) -> str:
    for named, real in reader.stands_for.items():
        text = text.replace(real, named)
    return text


async def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/recordings", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("docs/images"))
    directory = parser.parse_args(arguments).directory
    with tempfile.TemporaryDirectory() as place:
        async with open_first_tutorial(Path(place)) as reader:
            for each in recordings():
                path = directory / f"{each.name}.svg"
                path.write_text(await record(reader, each))
                print(path)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
