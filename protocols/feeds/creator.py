"""A creator's ``feed.json``, version 1: everything one creator has published.

The document is the complete list: an item that it lacks is gone. Items are known by
their slug, for good, wherever they move. One that breaks the rules is left out by
itself and stays what it was; what is wrong is said with a JSON pointer (RFC 6901).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import urljoin

from protocols.errors import InvalidDocument, UnsupportedVersion
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.creatoritem import InvalidItem, Item, read_item
from protocols.feeds.extensions import Json
from protocols.feeds.jsonitems import WrittenItems
from protocols.feeds.jsonvalues import shallow
from protocols.feeds.limits import MAX_ENTRIES, newest
from protocols.feeds.outline import KnownSlice, KnownSlices
from protocols.feeds.valuerules import Notes, flag, language, read_time, text, web_url
from protocols.identity import fingerprint, key_of_id
from protocols.model import Author, Entry, Feed, FeedFormat, Link, Outline, ParsedFeed
from protocols.text import collapse

GROUP: Final = "creator"
"""Of extensions: what the format says and the entry model has no place for."""
VERSIONS: Final = frozenset({1})
_MOST_PROBLEMS: Final = 50
_HEAD_KEYS: Final = frozenset(
    {"version", "generator", "generatedAt", "creator", "items"}
)
_ENOUGH_KEYS: Final = 3
"""So many of those tell a later version, whatever it calls the others."""
_CREATOR_KEYS: Final = frozenset(
    {
        "displayName",
        "bio",
        "siteUrl",
        "avatarUrl",
        "language",
        "discoverable",
    }
)

Members = dict[str, Json]


def is_creator_feed(document: Members) -> bool:
    """Whether it means to be one, valid or not.

    Unlike JSON Feed's, its version is a number, and it has a ``creator``. A later
    version may rename that, or anything else, as long as its version and two more of
    the head's names remain. One that forgot its items is known by its creator.
    """
    version = document.get("version")
    is_numbered = isinstance(version, int) and not isinstance(version, bool)
    if is_numbered and len(_HEAD_KEYS & document.keys()) >= _ENOUGH_KEYS:
        return True
    if "items" in document:
        return "creator" in document or (is_numbered and set(document) <= _HEAD_KEYS)
    creator = document.get("creator")
    if not is_numbered or not isinstance(creator, dict):
        return False
    return version not in VERSIONS or "handle" in creator


def read_creator_feed(document: Members, context: ParseContext) -> ParsedFeed:
    """Read a document for which `is_creator_feed`.

    Raises `InvalidDocument` for one that is wrong as a whole, and
    `UnsupportedVersion`.
    """
    creator, items = _check(document)
    reading = _Reading(handle=str(creator["handle"]).strip())
    head = _read_head(document, creator, reading.notes)
    setting = fingerprint(f"{GROUP} {reading.handle}\n{head.language}")
    written = WrittenItems(items if context.known is not None else ())
    known = KnownSlices.unpack(context.known or b"")
    reading.read(items, head.language, written, known, setting)
    if len(items) > MAX_ENTRIES:
        reading.is_complete = False
        reading.notes.add(
            "/items", f"{len(items)} items: only the newest {MAX_ENTRIES} are kept"
        )
    dropped = len(items) - len(reading.slices)
    return ParsedFeed(
        format=FeedFormat.CREATOR,
        feed=head,
        entries=tuple(reading.entries),
        problems=tuple(reading.notes.lines[:_MOST_PROBLEMS]),
        dropped=dropped,
        is_complete=reading.is_complete,
        spared=tuple(reading.spared),
        outline=None
        if context.known is None
        else reading.outline(setting, 0 if dropped else written.region),
    )


def _check(document: Members) -> tuple[Members, Sequence[Json]]:
    """The rules without which nothing of a document can be relied upon."""
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidDocument("/version", "expected an integer")
    if version not in VERSIONS:
        raise UnsupportedVersion("feed.json", str(version))
    creator = document.get("creator")
    if not isinstance(creator, dict):
        raise InvalidDocument("/creator", "expected an object")
    handle = creator.get("handle")
    if not isinstance(handle, str) or not handle.strip():
        raise InvalidDocument("/creator/handle", "expected a text that is not empty")
    items = document.get("items")
    if not isinstance(items, list):
        raise InvalidDocument("/items", "expected an array")
    return creator, items


@dataclass(slots=True)
class _Reading:
    """A document's items, as far as they are read.

    ``slices`` and ``keys`` are those of an `Outline`.
    """

    handle: str
    notes: Notes = field(default_factory=Notes)
    entries: list[Entry] = field(default_factory=list)
    slices: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    is_complete: bool = True
    met: set[int] = field(default_factory=set)

    def read(
        self,
        items: Sequence[Json],
        language: str,
        written: WrittenItems,
        known: KnownSlices,
        setting: int,
    ) -> None:
        """What is ``written`` are these items, or none: then none may be known."""
        found = written.find_all(known, setting)
        if found is not None:
            self.slices, self.keys = [*found.slices], [*found.keys]
            return
        by_hash = known.by_hash() if known.setting == setting else {}
        hashes = written.hashes or (0,) * len(items)
        for number, item in newest([*enumerate(items)], _date_of):
            self._read(f"/items/{number}", item, language, hashes[number], by_hash)

    def _read(
        self,
        place: str,
        item: Json,
        language: str,
        hashed: int,
        known: Mapping[int, KnownSlice],
    ) -> None:
        passed = known.get(hashed)
        if passed and passed.key not in self.met:
            self.met.add(passed.key)
            self.slices.append(hashed)
            self.keys.append(passed.key)
            return
        slug = _slug(item)
        if not slug:
            # Which item this was cannot be told: it may be any that seems to be gone.
            self.is_complete = False
        if not isinstance(item, dict):
            self.notes.add(place, "expected an object")
            return
        if not slug:
            self.notes.add(f"{place}/slug", "expected a text that is not empty")
            return
        key = key_of(self.handle, slug)
        if fingerprint(key) in self.met:
            self.notes.add(f"{place}/slug", f"{slug[:200]} is the slug of another item")
            return
        self.met.add(fingerprint(key))
        self._read_new(Item(place, key, item), language, hashed)

    def _read_new(self, item: Item, language: str, hashed: int) -> None:
        noted = len(self.notes.lines)
        try:
            entry = read_item(item, language, self.notes)
        except InvalidItem as error:
            self.notes.add(error.place, error.rule)
            self.spared.append(item.key)
            return
        self.entries.append(entry)
        # What there is to note of an item is to be noted again the next time.
        self.slices.append(hashed if noted == len(self.notes.lines) else 0)
        self.keys.append(0)

    def outline(self, setting: int, region: int) -> Outline:
        """``region`` is that of all items, if none of them was left out."""
        return Outline(
            setting=setting,
            slices=tuple(self.slices),
            keys=tuple(self.keys),
            region=region if all(self.slices) else 0,
        )


def older_url(url: str) -> str:
    """Where version 1 is, while later ones are published at ``url``: beside it."""
    return urljoin(url, "feed.v1.json")


def key_of(handle: str, slug: str) -> str:
    """An item's identity: its creator and its slug."""
    return key_of_id(f"{GROUP}:{handle}/{slug}")


def _date_of(numbered: tuple[int, Json]) -> datetime | None:
    item = numbered[1]
    return read_time(item.get("publishedAt"))[0] if isinstance(item, dict) else None


def _slug(item: Json) -> str:
    slug = item.get("slug") if isinstance(item, dict) else None
    return slug.strip() if isinstance(slug, str) else ""


def _read_head(document: Members, creator: Members, notes: Notes) -> Feed:
    handle = str(creator["handle"]).strip()
    name = collapse(text(creator, "displayName", "/creator", notes)) or handle
    site = web_url(creator, "siteUrl", "/creator", notes)
    avatar = web_url(creator, "avatarUrl", "/creator", notes)
    others: Members = {"handle": handle}
    others |= {key: value for key, value in creator.items() if key not in _CREATOR_KEYS}
    others |= {key: value for key, value in document.items() if key not in _HEAD_KEYS}
    picture = (make_link(avatar, "picture"),) if avatar else ()
    return Feed(
        title=name,
        subtitle=collapse(text(creator, "bio", "/creator", notes)),
        updated=read_time(document.get("generatedAt"))[0],
        links=(Link(href=site),) if site else (),
        authors=(Author(name=name, uri=site, links=picture),),
        language=language(creator, "/creator", notes),
        generator=collapse(text(document, "generator", "", notes)),
        logo=avatar,
        unlisted=not flag(creator, "discoverable", "/creator", notes, default=True),
        extensions={GROUP: shallow(others)},
    )
