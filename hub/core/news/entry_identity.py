"""Which entry is which, where ids alone do not decide.

**Known entries under other ids** are not new. After a move to another site, a redesign
or a change of format most of a document has new ids, and links, or titles with their
dates, that are known. A single entry needs more than that to be recognized: a new id
with a known link is a new entry.

**Single entries under an id that several have shared.** Some publishers give one id to
everything. If a document shows two such entries, the parser drops the id of both
(`protocols.feeds.assembly`), and they are identified by their links, enclosures or
content. A document with one of them does not show that the id means nothing. So the
seen-set remembers which ids were shared, and a single entry is identified here as if
others were beside it. Links and enclosures shared by entries without an id are treated
alike. Under an id that was never shared, a new title with a new link is an edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from hub.core.news.seen_set import UNDATED, SeenSet, Sighting, mark_of
from protocols.identity import Identity, fingerprint, identify, key_of_id, key_of_link
from protocols.model import Entry, IdSource, ParsedFeed, SharedKey, first_href

REKEYED_ENTRIES = 2
"""At least so many entries, and more than half of the document, must be recognized by
links or titles."""

_ESCAPED = str.maketrans("", "", "&<>\"'")

_Matches = dict[int, int]
"""New keys, each with the key that the entry had."""
_Attribute = Callable[[Sighting], int]
_LINK: Final[_Attribute] = attrgetter("link")
_TITLE: Final[_Attribute] = attrgetter("title")
_PATH: Final[_Attribute] = attrgetter("path")
_CONTENT: Final[_Attribute] = attrgetter("content")


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
    vanished = [
        each
        for key, each in known.items()
        if key not in current and not each.is_deleted
    ]
    if not unknown or not vanished:
        return {}
    hashed = {key for key, source in unknown.items() if source is IdSource.CONTENT}
    if is_reformatted or 2 * len(unknown) > len(current):
        # Content counts only for entries whose ids are hashes of it and their dates.
        keys = set(unknown)
        rules = ((_LINK, keys), (_TITLE, keys), (_PATH, keys), (_CONTENT, hashed))
        matches = _match(rules, vanished, current)
        is_mass = 2 * len(matches) > len(current) and len(matches) >= REKEYED_ENTRIES
        if is_mass or is_reformatted:
            return matches
    return _match_twins(vanished, current, unknown, hashed)


def find_continued(
    known: SeenSet,
    current: Mapping[int, Sighting],
    shared: Mapping[int, SharedKey],
    sources: Mapping[int, IdSource],
) -> _Matches:
    """Among entries that now share an id, the one that had this id alone before.

    It is found by its link, or else its title and date, or else its content. ``shared``
    gives for unknown keys what their entries share, by which one entry is known;
    ``sources`` says where their keys come from now.
    """
    sharing: dict[int, list[int]] = {}
    for key, each in shared.items():
        sharing.setdefault(fingerprint(each.shared), []).append(key)
    matches: _Matches = {}
    for old_key, keys in sharing.items():
        if old_key in current and old_key not in sources:
            continue  # the id is the link of one of them, which was known by it
        linked = [key for key in keys if sources[key] is IdSource.LINK]
        hashed = [key for key in keys if sources[key] is IdSource.CONTENT]
        rules = ((_LINK, linked), (_TITLE, keys), (_undated_content, hashed))
        for attribute, free in rules:
            value = attribute(known[old_key])
            same = [key for key in free if value and attribute(current[key]) == value]
            if len(same) == 1:
                matches[same[0]] = old_key
                break
    return matches


def find_reread(
    known: SeenSet, current: Mapping[int, Sighting], unknown: Mapping[int, str]
) -> _Matches:
    """Entries that a former version knew by one generated id, and this version by
    another.

    They are found by title, and date if there is any. ``unknown`` has the titles.
    """
    made_up = {
        each.title: each.key
        for key, each in known.items()
        if each.has_generated_id and each.title and key not in current
    }
    matches: _Matches = {}
    for key, title in unknown.items():
        for value in (current[key].title, fingerprint(title)):
            if value in made_up:
                matches[key] = made_up.pop(value)
                break
    return matches


def find_unescaped(
    known: SeenSet, current: Collection[int], unknown: Mapping[int, str]
) -> _Matches:
    """Entries that a former version knew by an id without its escaped characters.

    In documents that could only be recovered it read ``?a=1&amp;b=2`` as ``?a=1b=2``.
    ``unknown`` has the keys as texts.
    """
    found: _Matches = {}
    for key, text in unknown.items():
        former = fingerprint(key_of_id(text.translate(_ESCAPED)))
        if former in known and former not in current:
            found.setdefault(former, key)
    return {key: former for former, key in found.items()}


def _match_twins(
    vanished: list[Sighting],
    current: Mapping[int, Sighting],
    unknown: Mapping[int, IdSource],
    hashed: set[int],
) -> _Matches:
    """Match single entries with vanished ones that have the same words and date.

    Without a date only generated ids are doubted: they change when a link becomes
    shared, or is no longer shared. An id that is a hash of the content changes when
    that is edited: then title and date are enough. A title alone is not, since daily
    posts under one title are news. A generated id is not doubted if a publisher's id
    takes its place that other entries had as well.
    """
    doubted = {
        key
        for key, source in unknown.items()
        if current[key].title or source is not IdSource.FEED
    }
    rules = ((_words, doubted), (_dated_title, hashed))
    matches = _match(rules, vanished, current)
    made_up = [each for each in vanished if each.has_generated_id]
    left = set(unknown) - matches.keys()
    return _match(((_words, left),), made_up, current) | matches


def _match(
    rules: Iterable[tuple[_Attribute, set[int]]],
    vanished: list[Sighting],
    current: Mapping[int, Sighting],
) -> _Matches:
    """Match attributes that one vanished and one current entry have alone; earlier
    rules go first."""
    matches: _Matches = {}
    for attribute, keys in rules:
        free, taken = keys - matches.keys(), set(matches.values())
        here = _unique(attribute, current.values())
        wanted = {value: key for value, key in here.items() if key in free}
        there = _unique(
            attribute, [each for each in vanished if attribute(each) in wanted]
        )
        matches |= {
            wanted[value]: old_key
            for value, old_key in there.items()
            if old_key not in taken
        }
    return matches


def _dated_title(sighting: Sighting) -> int:
    return 0 if sighting.flags & UNDATED else sighting.title


def _undated_content(sighting: Sighting) -> int:
    return sighting.content if sighting.flags & UNDATED else 0


def _words(sighting: Sighting) -> int:
    """An entry's words and date as one number; 0 if its words are not known."""
    return sighting.content and sighting.content << 64 | sighting.title


def _unique(attribute: _Attribute, sightings: Collection[Sighting]) -> dict[int, int]:
    """Keys by the attribute, where exactly one sighting has it."""
    counts = Counter(map(attribute, sightings))
    return {
        value: each.key
        for each in sightings
        if (value := attribute(each)) and counts[value] == 1
    }


def without_shared_ids(document: ParsedFeed, marks: Container[int]) -> ParsedFeed:
    """The document, with another identity for each entry whose own was shared.

    ``marks`` are of the feed's seen-set (`hub.core.news.seen_set.shared_marks`).
    """
    own = [
        each
        for each in document.entries
        if mark_of(each.id_source, fingerprint(each.key)) not in marks
    ]
    if len(own) == len(document.entries):
        return document
    passed_over = document.outline.keys if document.outline else ()
    taken = {
        fingerprint(key_of_link(first_href(document.feed.links, "alternate"))),
        *passed_over,
        *(fingerprint(each.key) for each in own),
    }
    entries: list[Entry] = []
    shared: list[SharedKey] = []
    for entry in document.entries:
        if mark_of(entry.id_source, fingerprint(entry.key)) in marks:
            identity = _identify(entry, marks, taken)
            taken.add(fingerprint(identity.key))
            shared.append(SharedKey(identity.key, entry.key, entry.id_source))
            entry = replace(
                entry, key=identity.key, id=identity.id, id_source=identity.source
            )
        entries.append(entry)
    return replace(
        document,
        entries=tuple(entries),
        shared_keys=document.shared_keys + tuple(shared),
    )


def _identify(entry: Entry, marks: Container[int], taken: Container[int]) -> Identity:
    """An identity that was neither shared before nor belongs to another entry."""

    def own(relation: str, source: IdSource) -> str:
        url = first_href(entry.links, relation)
        key = fingerprint(key_of_link(url))
        is_free = mark_of(source, key) not in marks and key not in taken
        return url if is_free else ""

    content = entry.content or entry.summary
    return identify(
        link=own("alternate", IdSource.LINK),
        enclosure=own("enclosure", IdSource.ENCLOSURE),
        title=entry.title,
        date=entry.published or entry.updated,
        content=content.value if content else "",
    )
