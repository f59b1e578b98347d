"""One item of a creator's ``feed.json``."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from protocols.feeds.constructs import make_link
from protocols.feeds.extensions import Json
from protocols.feeds.jsonvalues import shallow
from protocols.feeds.valuerules import (
    Members,
    Notes,
    absolute_url,
    flag,
    language,
    members,
    number,
    read_time,
    text,
    values,
    web_url,
)
from protocols.model import Category, Entry, Link, Text
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


class Item(NamedTuple):
    """An item as it stands at a place, a JSON pointer, with the key of its slug."""

    place: str
    key: str
    members: Members


class InvalidItem(Exception):
    """An item that cannot be read: where, and what was expected there."""

    def __init__(self, place: str, rule: str) -> None:
        self.place = place
        self.rule = rule
        super().__init__(f"{place}: {rule}")


def read_item(item: Item, spoken: str, notes: Notes) -> Entry:
    """Read an item; ``spoken`` is its creator's. What is optional and wrong is left
    out and noted. Raises `InvalidItem`."""
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
        expected = "a text that is not empty" if is_filled else "a text"
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
        raise InvalidItem(f"{place}/kinds", "expected an array that is not empty")
    for number_, kind in enumerate(kinds):
        if not isinstance(kind, str):
            raise InvalidItem(f"{place}/kinds/{number_}", "expected a text")
        if kind not in _KINDS:
            notes.add(f"{place}/kinds/{number_}", f"{kind[:40]!r} is no known kind")
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
    """The entry's links; what more there is to say of pictures and media is put into
    the extension."""
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
