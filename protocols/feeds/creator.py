"""A creator's ``feed.json``, version 1: everything one creator has published.

The document is the complete list: an item that is missing is deleted. An item is
identified by its slug forever, even if its URL changes. An item that breaks the rules
is left out and the stored entry stays as it is; errors are reported with a JSON pointer
(RFC 6901).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import urljoin

from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.extensions import Json
from protocols.feeds.jsonvalues import (
    Members,
    Notes,
    absolute_url,
    flag,
    language,
    members,
    number,
    read_time,
    shallow,
    text,
    values,
    web_url,
)
from protocols.feeds.known_entries import KnownSlice, KnownSlices, WrittenItems
from protocols.feeds.limits import MAX_ENTRIES, newest
from protocols.identity import fingerprint, key_of_id
from protocols.model import (
    Author,
    Category,
    Entry,
    Feed,
    FeedFormat,
    Link,
    Outline,
    ParsedFeed,
    Text,
)
from protocols.protocol_errors import InvalidDocument, UnsupportedVersion
from protocols.text import collapse

_KINDS: Final = frozenset({"text", "video", "audio", "image"})
_MEDIA_KINDS: Final = frozenset({"video", "audio", "image"})
_MOST_MEDIA: Final = 100
_MEDIA_NUMBERS: Final = ("durationSec", "size", "width", "height")
_MEDIA_URLS: Final = ("thumbnail", "transcript")
_KEYS: Final = frozenset(
    {
        "slug",
        "title",
        "summary",
        "url",
        "publishedAt",
        "updatedAt",
        "tags",
        "kinds",
        "discoverable",
        "thumbnail",
        "media",
        "language",
        "wordCount",
        "external",
    }
)


class CreatorItem(NamedTuple):
    """An item, the JSON pointer to it (``place``), and the key made from its slug."""

    place: str
    key: str
    members: Members


class InvalidItem(Exception):
    """An item that cannot be read: its place, and what was expected there."""

    def __init__(self, place: str, rule: str) -> None:
        self.place = place
        self.rule = rule
        super().__init__(f"{place}: {rule}")


def read_item(item: CreatorItem, spoken: str, notes: Notes) -> Entry:
    """Read an item; ``spoken`` is its creator's language, the default for the item's.

    Invalid optional members are left out and noted. Raises `InvalidItem`.
    """
    place, key, found = item
    title = collapse(_required_text(found, "title", place))
    summary = _required_text(found, "summary", place, is_filled=False)
    url = absolute_url(found.get("url"))
    if not url:
        raise InvalidItem(f"{place}/url", "expected an absolute http or https URL")
    published = _required_time(found, "publishedAt", place, notes)
    updated = _required_time(found, "updatedAt", place, notes)
    extension: Members = {"kinds": _kinds(found, place, notes)}
    links = _links(found, url, place, notes, extension)
    words = number(found, "wordCount", place, notes)
    if words is not None:
        extension["wordCount"] = words
    others: Members = {
        name: shallow(value) for name, value in found.items() if name not in _KEYS
    }
    return Entry(
        key=key,
        id=url,
        title=title,
        summary=Text(value=summary, type="text") if summary else None,
        published=published,
        updated=updated,
        links=tuple(links),
        categories=_tags(found, place, notes),
        language=language(found, place, notes) or spoken,
        unlisted=not flag(found, "discoverable", place, notes, default=True),
        extensions={"creator": extension, "creator-other": others}
        if others
        else {"creator": extension},
    )


def _required_text(
    found: Members, name: str, place: str, *, is_filled: bool = True
) -> str:
    value = found.get(name)
    if not isinstance(value, str) or (is_filled and not value.strip()):
        expected = "a non-empty text" if is_filled else "a text"
        raise InvalidItem(f"{place}/{name}", f"expected {expected}")
    return value.strip()


def _required_time(found: Members, name: str, place: str, notes: Notes) -> datetime:
    time, is_zoned = read_time(found.get(name))
    if time is None:
        raise InvalidItem(f"{place}/{name}", "expected an ISO 8601 time")
    if not is_zoned:
        notes.add(f"{place}/{name}", "without a time zone: taken as UTC")
    return time


def _kinds(found: Members, place: str, notes: Notes) -> list[Json]:
    kinds = found.get("kinds")
    if not isinstance(kinds, list) or not kinds:
        raise InvalidItem(f"{place}/kinds", "expected a non-empty array")
    for number_, kind in enumerate(kinds):
        if not isinstance(kind, str):
            raise InvalidItem(f"{place}/kinds/{number_}", "expected a text")
        if kind not in _KINDS:
            notes.add(f"{place}/kinds/{number_}", f"{kind[:40]!r} is not a known kind")
    return kinds


def _tags(found: Members, place: str, notes: Notes) -> tuple[Category, ...]:
    tags: dict[Category, None] = {}
    for number_, tag in enumerate(values(found, "tags", place, notes)):
        if isinstance(tag, str) and tag.strip():
            tags.setdefault(Category(term=collapse(tag).lower()))
        else:
            notes.add(f"{place}/tags/{number_}", "expected a text; left out")
    return tuple(tags)


def _links(
    found: Members, url: str, place: str, notes: Notes, extension: Members
) -> list[Link]:
    """The entry's links; further properties of pictures and media go to
    ``extension``.
    """
    links = [Link(href=url)]
    if external := web_url(found, "external", place, notes):
        links.append(Link(href=external, rel="related"))
        extension["external"] = external
    if thumbnail := members(found, "thumbnail", place, notes):
        kept = _thumbnail(thumbnail, f"{place}/thumbnail", notes)
        if kept:
            links.append(make_link(str(kept["url"]), "image"))
            extension["thumbnail"] = kept
    media: list[Json] = []
    for number_, each in enumerate(values(found, "media", place, notes)[:_MOST_MEDIA]):
        described = _medium(each, f"{place}/media/{number_}", notes)
        if described:
            media.append(described)
            links.append(_enclosure(described))
    if media:
        extension["media"] = media
    return links


def _thumbnail(thumbnail: Members, place: str, notes: Notes) -> Members:
    url = absolute_url(thumbnail.get("url"))
    if not url:
        notes.add(f"{place}/url", "expected an absolute URL; left out")
        return {}
    kept: Members = {"url": url}
    for name in ("width", "height"):
        size = number(thumbnail, name, place, notes)
        if size is not None:
            kept[name] = size
    return kept


def _medium(medium: Json, place: str, notes: Notes) -> Members:
    if not isinstance(medium, dict):
        notes.add(place, "expected an object; left out")
        return {}
    url = absolute_url(medium.get("url"))
    if not url:
        notes.add(f"{place}/url", "expected an absolute URL; left out")
        return {}
    kept: Members = {"kind": text(medium, "kind", place, notes), "url": url}
    if kept["kind"] not in _MEDIA_KINDS:
        notes.add(f"{place}/kind", "expected video, audio or image")
    kept["mime"] = text(medium, "mime", place, notes)
    for name in _MEDIA_NUMBERS:
        value = number(medium, name, place, notes)
        if value is not None:
            kept[name] = value
    for name in _MEDIA_URLS:
        address = web_url(medium, name, place, notes)
        if address:
            kept[name] = address
    return {name: value for name, value in kept.items() if value != ""}


def _enclosure(medium: Members) -> Link:
    return make_link(
        str(medium["url"]),
        "enclosure",
        str(medium.get("mime", "")),
        length=str(medium["size"]) if "size" in medium else None,
    )


GROUP: Final = "creator"
"""The group of extensions for members that the entry model has no field for."""
VERSIONS: Final = frozenset({1})
_MOST_PROBLEMS: Final = 50
_HEAD_KEYS: Final = frozenset(
    {"version", "generator", "generatedAt", "creator", "items"}
)
_ENOUGH_KEYS: Final = 3
"""A document with this many of the head's keys is a creator feed of a later version,
even if the other keys have changed.
"""
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


def is_creator_feed(document: Members) -> bool:
    """Whether the document is meant to be a creator feed, valid or not.

    Unlike in JSON Feed, ``version`` is a number, and there is a ``creator``. A later
    version may rename any key, as long as the version and two more of the head's keys
    remain. A document without items is recognized by its creator.
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
    """Read a document for which `is_creator_feed` is true.

    Raises `InvalidDocument` for a document that is invalid as a whole, and
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
    """Return the creator and the items. Raises an error if the document breaks a rule
    without which nothing in it can be relied upon.
    """
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
        raise InvalidDocument("/creator/handle", "expected a non-empty text")
    items = document.get("items")
    if not isinstance(items, list):
        raise InvalidDocument("/items", "expected an array")
    return creator, items


@dataclass(slots=True)
class _Reading:
    """The state of reading a document's items.

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
        """Read the items. ``written`` holds these items, or none; then none is
        recognized as known.
        """
        found = written.find_all(known, setting)
        if found is not None:
            self.slices, self.keys = [*found.slices], [*found.keys]
            return
        by_hash = known.by_hash() if known.setting == setting else {}
        hashes = written.hashes or (0,) * len(items)
        for place, item in newest([*enumerate(items)], _date_of):
            self._read(f"/items/{place}", item, language, hashes[place], by_hash)

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
            # There is no telling which item this was: it may be any that seems to be
            # missing.
            self.is_complete = False
        if not isinstance(item, dict):
            self.notes.add(place, "expected an object")
            return
        if not slug:
            self.notes.add(f"{place}/slug", "expected a non-empty text")
            return
        key = key_of(self.handle, slug)
        if fingerprint(key) in self.met:
            self.notes.add(f"{place}/slug", f"{slug[:200]} is the slug of another item")
            return
        self.met.add(fingerprint(key))
        self._read_new(CreatorItem(place, key, item), language, hashed)

    def _read_new(self, item: CreatorItem, language: str, hashed: int) -> None:
        noted = len(self.notes.lines)
        try:
            entry = read_item(item, language, self.notes)
        except InvalidItem as error:
            self.notes.add(error.place, error.rule)
            self.spared.append(item.key)
            return
        self.entries.append(entry)
        # An item with problems has hash 0, so that it is read and noted again next
        # time.
        self.slices.append(hashed if noted == len(self.notes.lines) else 0)
        self.keys.append(0)

    def outline(self, setting: int, region: int) -> Outline:
        """The outline of what was read; ``region`` is the hash of all items, which
        counts only if none was left out.
        """
        return Outline(
            setting=setting,
            slices=tuple(self.slices),
            keys=tuple(self.keys),
            region=region if all(self.slices) else 0,
        )


def older_url(url: str) -> str:
    """The URL of version 1, which stays next to ``url`` when later versions are
    published.
    """
    return urljoin(url, "feed.v1.json")


def key_of(handle: str, slug: str) -> str:
    """An item's key, made from the creator's handle and the item's slug."""
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
