"""Forms with files: ``multipart/form-data`` (RFC 7578)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MULTIPART: Final = "multipart/form-data"
_BOUNDARY: Final = re.compile(
    r'multipart/form-data\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))',
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    rb'^content-disposition:[^\r\n]*?[; ]name="([^"\r\n]*)"',
    re.IGNORECASE | re.MULTILINE,
)
_FILE: Final = re.compile(
    rb"^content-disposition:[^\r\n]*?[; ]filename\*?=", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPart:
    """A field, or a file that was chosen for it."""

    name: str
    content: bytes
    is_file: bool


def read_parts(body: bytes, content_type: str) -> Iterator[FormPart]:
    """The parts of the form, in order. Raises ValueError."""
    found = _BOUNDARY.match(content_type)
    if found is None:
        raise ValueError("no boundary")
    delimiter = f"\r\n--{found[1] or found[2]}".encode()
    _, *parts = (b"\r\n" + body).split(delimiter)
    if not parts or not parts.pop().startswith(b"--"):
        raise ValueError("no end")
    for part in parts:
        head, is_headed, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not is_headed or name is None:
            raise ValueError("a part without a name")
        is_file = _FILE.search(head) is not None
        yield FormPart(name=name[1].decode(), content=content, is_file=is_file)
