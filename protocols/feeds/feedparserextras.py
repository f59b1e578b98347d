"""What feedparser's result has of extension modules, put where our readers put it.

It flattens them: ``itunes:duration`` is ``itunes_duration``, in small letters, an
element's text or its attributes; of media it has lists of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from protocols.feeds.capitals import usual_name
from protocols.feeds.constructs import make_link
from protocols.feeds.drafts import Draft, EntryDraft
from protocols.feeds.extensions import Json, keep_value
from protocols.feeds.geo import read_point
from protocols.feeds.names import NAMESPACES
from protocols.feeds.scope import Scope
from protocols.model import Author, Feed, Link
from protocols.text import text_of_html

Fields: TypeAlias = Mapping[str, object]

_READ: Final = frozenset({"atom", "atom03", "content", "dc", "dcterms", "rdf", "rss"})
"""Feedparser has places of its own for these."""


def read_extras(draft: Draft, fields: Fields, scope: Scope) -> None:
    """Extensions of a head or an entry, and the links and places they stand for."""
    for name in fields:
        prefix, _, local = name.partition("_")
        if local and prefix in NAMESPACES and prefix not in _READ:
            value = _plain(fields[name])
            if value:
                keep_value(draft.extensions, prefix, usual_name(local), value)
    image = scope.resolve(text_at(_mapping(fields, "image"), "href"))
    if not isinstance(draft, EntryDraft):
        draft.offer("logo", image)
        return
    if image:
        draft.add_link(make_link(image, "image"))
    comments = scope.resolve(text_at(fields, "comments"))
    if comments:
        draft.add_link(Link(href=comments, rel="replies"))
    _read_media(draft, fields, scope)
    _read_place(draft, fields)
    _read_source(draft, _mapping(fields, "source"), scope)


def _read_media(draft: EntryDraft, fields: Fields, scope: Scope) -> None:
    for file in mappings_at(fields, "media_content"):
        url, type = scope.resolve(text_at(file, "url")), text_at(file, "type")
        is_image = text_at(file, "medium") == "image" or type.startswith("image/")
        if url:
            rel = "image" if is_image else "enclosure"
            length = text_at(file, "filesize")
            draft.add_link(make_link(url, rel, type, length=length))
    for picture in mappings_at(fields, "media_thumbnail"):
        url = scope.resolve(text_at(picture, "url"))
        if url:
            draft.add_link(make_link(url, "thumbnail"))


def _read_place(draft: EntryDraft, fields: Fields) -> None:
    """As in GeoJSON, longitude first; or two fields, which are no extensions then."""
    where = _mapping(fields, "where")
    coordinates = where.get("coordinates") if where.get("type") == "Point" else ()
    if isinstance(coordinates, tuple) and coordinates:
        draft.geo = read_point(" ".join(map(str, reversed(coordinates))))
    elif place := read_point(
        f"{text_at(fields, 'geo_lat')} {text_at(fields, 'geo_long')}"
    ):
        draft.geo = place
        del draft.extensions["geo"]


def _read_source(draft: EntryDraft, source: Fields, scope: Scope) -> None:
    """RSS names it by title and address; of Atom's more is not told."""
    href, title = scope.resolve(text_at(source, "href")), text_at(source, "title")
    if href or title or "authors" in source:
        link = Link(href=href, rel="self", type="application/rss+xml")
        id, links = text_at(source, "id"), (link,) if href else ()
        people = (read_author(each, scope) for each in mappings_at(source, "authors"))
        draft.source = Feed(
            id=id,
            title=text_of_html(title),
            links=links,
            authors=tuple(each for each in people if each.name or each.email),
        )


def read_author(author: Fields, scope: Scope) -> Author:
    return Author(
        name=text_at(author, "name"),
        email=text_at(author, "email"),
        uri=scope.resolve(text_at(author, "href")),
    )


def text_at(fields: Fields, name: str) -> str:
    """A field as it is: feedparser makes up missing ones, with a warning, if asked.

    Character references give it half characters; nobody could encode them again.
    """
    value = dict.get(fields, name) if isinstance(fields, dict) else None
    return _sound(value) if isinstance(value, str) else ""


def mappings_at(fields: Fields, name: str) -> Iterator[Fields]:
    values = dict.get(fields, name) if isinstance(fields, dict) else None
    if isinstance(values, Iterable):
        yield from (each for each in values if isinstance(each, Mapping))


def base_at(fields: Fields) -> str:
    """The ``xml:base`` inside of an entry, as its texts tell it."""
    details = (_mapping(fields, name) for name in ("title_detail", "summary_detail"))
    return next((base for each in details if (base := text_at(each, "base"))), "")


def _mapping(fields: Fields, name: str) -> Fields:
    value = dict.get(fields, name) if isinstance(fields, dict) else None
    return value if isinstance(value, Mapping) else {}


def _plain(value: object) -> Json:
    """Texts, attributes, and lists of these; what else there may be is left out."""
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, list):
        parts: list[Json] = [part for each in value if (part := _plain(each))]
        return parts[0] if len(parts) == 1 else parts
    if isinstance(value, Mapping):
        texts = {
            usual_name(k): _sound(v) for k, v in value.items() if isinstance(v, str)
        }
        kept: dict[str, Json] = {name: text for name, text in texts.items() if text}
        return kept
    return None


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode().strip()
