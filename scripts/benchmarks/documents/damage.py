"""What is wrong with one feed in fourteen: blanks, entities, bytes, missing tags.

The shares are those of 692 real XML feeds, by the repair that each needs: of 14 that
no cheap repair makes well-formed, libxml2 recovers 12, and feedparser has to read 2.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

Damage = Callable[[bytes, Random], bytes]


def draw_damage(random: Random) -> Damage | None:
    """One kind of damage, or, mostly, none."""
    drawn = random.random()
    for damage, share in _SHARES:
        drawn -= share
        if drawn < 0:
            return damage
    return None


def _blank_before(body: bytes, random: Random) -> bytes:
    return b"\n" + body


def _marked(body: bytes, random: Random) -> bytes:
    return b"\xef\xbb\xbf" + body


def _with_entities(body: bytes, random: Random) -> bytes:
    """HTML's, and bare ampersands."""
    return body.replace(b"<title>", b"<title>&nbsp;Q & A&hellip; ")


def _with_controls(body: bytes, random: Random) -> bytes:
    return body.replace(b"<title>", b"<title>\x08\x0b")


def _with_bad_bytes(body: bytes, random: Random) -> bytes:
    """Windows-1252 in a document that says it is UTF-8."""
    return body.decode().encode("cp1252", "replace")


def _in_latin_1(body: bytes, random: Random) -> bytes:
    """Nothing wrong: another encoding, and declared."""
    text = body.decode().replace("UTF-8", "ISO-8859-1").replace("utf-8", "ISO-8859-1")
    return text.encode("iso8859-1", "xmlcharrefreplace")


def _with_attribute_twice(body: bytes, random: Random) -> bytes:
    """In one start tag, past which libxml2 finds its way."""
    at = body.find(b"<title", len(body) // 2) + len(b"<title")
    return body[:at] + b' lang="en" lang="en"' + body[at:]


def _with_open_tag(body: bytes, random: Random) -> bytes:
    """Inside one title, which swallows what follows it: feedparser's work."""
    at = body.find(b"</title>", len(body) // 2)
    return body[:at] + b"<b>" + body[at:]


def _cut_off(body: bytes, random: Random) -> bytes:
    """Within the last entry."""
    return body[: len(body) * 19 // 20 - 40]


_SHARES: Final[tuple[tuple[Damage, float], ...]] = (
    (_blank_before, 0.025),
    (_marked, 0.01),
    (_with_entities, 0.012),
    (_with_controls, 0.006),
    (_with_bad_bytes, 0.004),
    (_in_latin_1, 0.025),
    (_with_attribute_twice, 0.011),
    (_cut_off, 0.006),
    (_with_open_tag, 0.003),
)
