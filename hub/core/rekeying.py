"""Known entries that come under other ids: they are no news.

A site that moves, a redesign, another format, ids that change with each request: then
most of a document has new ids, and links, or titles with their dates, that are known.
A single entry needs more to be known again than that: a new id and a known link alone
are news, as the contract has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from hub.core.seen import SeenSet, Sighting
from protocols.model import IdSource

REKEYED_ENTRIES = 2
"""So many at least, and more than half of the document, are known again by links or
titles."""

_Matches = dict[int, int]
"""New keys, each with the key that the entry had."""


def find_rekeyed(
    known: SeenSet,
    current: Mapping[int, Sighting],
    unknown: Mapping[int, IdSource],
    *,
    is_reformatted: bool,
) -> _Matches:
    """Which of the unknown keys belong to known entries, and the keys they had.

    ``current`` is the whole document, ``unknown`` says where the new ids came from.
    """
    if not unknown or not len(known):
        return {}
    vanished = [
        each for each in known if each.key not in current and not each.is_deleted
    ]
    if is_reformatted or 2 * len(unknown) > len(current):
        matches = _match_documents(vanished, current, unknown)
        is_mass = 2 * len(matches) > len(current) and len(matches) >= REKEYED_ENTRIES
        if is_mass or is_reformatted:
            return matches
    return _match_twins(vanished, current, unknown)


def _match_documents(
    vanished: list[Sighting],
    current: Mapping[int, Sighting],
    unknown: Mapping[int, IdSource],
) -> _Matches:
    """By what is unique to one entry before and to one entry now.

    What entries say counts only if their ids are hashes of that and of their dates.
    """
    hashed = {key for key, source in unknown.items() if source is IdSource.CONTENT}
    matches: _Matches = {}
    for attribute, keys in (
        (_link, unknown.keys()),
        (_title, unknown.keys()),
        (_path, unknown.keys()),
        (_content, hashed),
    ):
        new = _unique(attribute, current.values())
        free, taken = keys - matches.keys(), set(matches.values())
        matches |= {
            new[value]: old_key
            for value, old_key in _unique(attribute, vanished).items()
            if new.get(value) in free and old_key not in taken
        }
    return matches


def _match_twins(
    vanished: list[Sighting],
    current: Mapping[int, Sighting],
    unknown: Mapping[int, IdSource],
) -> _Matches:
    """One by one: what says the same, under the same date, as one that is gone.

    Where there is no date only made-up ids are doubted: they change when a link comes
    to be shared, or is no longer. An id that is a hash of what the entry says changes
    when that is edited: then title and date are enough.
    """
    twins = {(each.content, each.title): each.key for each in vanished if each.content}
    titled = {each.title: each.key for each in vanished if each.title}
    matches: _Matches = {}
    for key, source in unknown.items():
        now = current[key]
        old_key = None
        if now.title or source is not IdSource.FEED:
            old_key = twins.pop((now.content, now.title), None)
        if old_key is None and source is IdSource.CONTENT:
            old_key = titled.pop(now.title, None)
        if old_key is not None and old_key not in matches.values():
            matches[key] = old_key
    return matches


def _link(sighting: Sighting) -> int:
    return sighting.link


def _title(sighting: Sighting) -> int:
    return sighting.title


def _path(sighting: Sighting) -> int:
    return sighting.path


def _content(sighting: Sighting) -> int:
    return sighting.content


def _unique(
    attribute: Callable[[Sighting], int], sightings: Iterable[Sighting]
) -> _Matches:
    """Keys by the attribute, where it is there and belongs to one sighting only."""
    sightings = list(sightings)
    counts = Counter(map(attribute, sightings))
    return {
        value: each.key
        for each in sightings
        if (value := attribute(each)) and counts[value] == 1
    }
