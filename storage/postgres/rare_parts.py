"""Which parts of a sought text an index of trigrams finds it by.

The index reads the whole list of each trigram it is asked for, and in addresses most
trigrams are those of ``https``, ``example`` or ``callback``, which all have. A few that
few texts have find as little, hundreds of times as fast. Whether a text has what is
sought is checked in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from storage.postgres.connections import Connections

_FEED_TEXT: Final = "feed_text(url, title)"
_SAMPLE: Final = f"""
SELECT f.text FROM (SELECT min(id) AS first, max(id) AS last FROM feeds) e,
    generate_series(0, 63) n,
    LATERAL (SELECT {_FEED_TEXT} AS text FROM feeds
        WHERE id >= e.first + (e.last - e.first) * n / 64 ORDER BY id LIMIT 1) f
"""
ENOUGH: Final = 3
"""So many parts find nearly as little as all of them."""


def word_parts(texts: Iterable[str]) -> tuple[str, ...]:
    """The parts of three letters and digits each, in lower case, in order, once each;
    the index knows few others."""
    found = (
        text[start : start + 3]
        for text in map(str.lower, texts)
        for start in range(len(text) - 2)
    )
    return tuple(
        dict.fromkeys(part for part in found if part.isascii() and part.isalnum())
    )


def rarest(parts: Sequence[str], sample: Sequence[str]) -> tuple[str, ...]:
    """A few of the parts that the fewest texts of the sample have; none that half of
    them have: all texts are read sooner than their index."""
    counts = {part: sum(part in text for text in sample) for part in parts}
    rare = [part for part in parts if 2 * counts[part] < len(sample)]
    return tuple(sorted(rare, key=counts.__getitem__)[:ENOUGH])


async def feed_condition(
    connections: Connections, text: str
) -> tuple[str, dict[str, str]]:
    """The condition that a feed's URL or title has a part, and its parameters."""
    parts = word_parts([text])
    if not parts:
        escaped = text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        return f"{_FEED_TEXT} LIKE %(pattern)s", {"pattern": f"%{escaped}%"}
    sample = [each for (each,) in await connections.all(_SAMPLE)]
    rare = {
        f"rare_{number}": f"%{part}%"
        for number, part in enumerate(rarest(parts, sample))
    }
    conditions = [
        *(f"{_FEED_TEXT} LIKE %({name})s" for name in rare),
        # By no index; the planner takes it that a third of the texts have it.
        f"strpos({_FEED_TEXT}, %(part)s) > 0",
    ]
    return " AND ".join(conditions), {"part": text, **rare}
