"""The end of the log as this machine last saw it, in a file of its own.

A server that was restored from a backup may lack the end of the log, and does not know.
By this file a hub that starts can tell: then the log begins a new epoch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from protocols.cursor import read_cursor
from protocols.protocol_errors import InvalidValue
from storage.records import Cursor, Position

NOTHING: Final = Cursor("", Position(0))


class KnownEnd:
    """The noted end, if possible: none is known if the file cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted = self._read()

    @property
    def cursor(self) -> Cursor:
        return self._noted

    def note(self, cursor: Cursor) -> None:
        """Write the end if it has moved: whole, or not at all."""
        if cursor == self._noted:
            return
        self._noted = cursor
        partial = self._path.with_name(self._path.name + ".partial")
        try:
            partial.write_text(f"{cursor}\n", encoding="ascii")
            os.replace(partial, self._path)
        except OSError:
            return

    def _read(self) -> Cursor:
        try:
            epoch, position = read_cursor(self._path.read_text("ascii").strip())
        except (OSError, ValueError, InvalidValue):
            return NOTHING
        return Cursor(epoch, Position(position))
