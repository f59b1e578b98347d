"""Dates, texts, links and people as they stand in every JSON object of the schema.

Written out key by key: this is done for every entry, and a loop over a table of keys
would take several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import floor
from typing import Any, TypeAlias

from protocols.model import Author, Category, Link
from protocols.superfeedr.ids import author_id

JsonObject: TypeAlias = dict[str, Any]

_PICTURES = frozenset({"picture", "image", "thumbnail"})


def seconds(moment: datetime) -> int:
    return floor(moment.timestamp())


def put_links(target: JsonObject, links: Iterable[Link]) -> None:
    """Every link by its relation, and the first alternate as the permalink."""
    grouped: dict[str, list[JsonObject]] = {}
    for link in links:
        rel = link.rel
        each: JsonObject = {
            "title": link.title,
            "rel": rel,
            "href": link.href,
            "type": link.type,
        }
        if link.length is not None:
            each["length"] = link.length
        if rel in grouped:
            grouped[rel].append(each)
        else:
            grouped[rel] = [each]
    if grouped:
        if "alternate" in grouped:
            target["permalinkUrl"] = grouped["alternate"][0]["href"]
        target["standardLinks"] = grouped


def permalink(links: Iterable[Link]) -> str:
    for link in links:
        if link.rel == "alternate":
            return link.href
    return ""


def actor_object(person: Author) -> JsonObject:
    """Superfeedr's actors had no mail address, and ours have none."""
    actor: JsonObject = {}
    if person.name:
        actor["displayName"] = person.name
    if id := author_id(person):
        actor["id"] = id
    if person.title:
        actor["title"] = person.title
    if page := permalink(person.links) or person.uri:
        actor["permalinkUrl"] = page
    for link in person.links:
        if link.rel in _PICTURES:
            actor["image"] = link.href
            break
    if kind := last_segment(person.object_types):
        actor["objectType"] = kind
    return actor


def last_segment(uris: Sequence[str]) -> str:
    """Of the last one: ``http://activitystrea.ms/schema/1.0/place`` is ``place``."""
    return uris[-1].rstrip("/").rpartition("/")[2] if uris else ""


def category_object(category: Category) -> JsonObject:
    found: JsonObject = {"term": category.term}
    if category.scheme:
        found["scheme"] = category.scheme
    if category.label:
        found["label"] = category.label
    return found
