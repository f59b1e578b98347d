"""Names of people as everybody may read them: mail addresses are nobody's business."""

from __future__ import annotations

import re
from typing import Final

from protocols.model import Author
from protocols.text import collapse

LONGEST_NAME: Final = 200
"""Characters of a name that are read, to the end of a word."""

# Its time grows with the square of what it reads.
_MAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+")


def display_name(person: Author) -> str:
    """A name without the mail address that may stand in it."""
    name = person.name
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME].rpartition(" ")[0]  # no half address at its end
    return collapse(_MAIL.sub("", name)).strip(" <>()")
