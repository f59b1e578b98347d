"""Dates, texts, links and people as they stand in every JSON object of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import floor
from typing import Any, TypeAlias

from protocols.model import Author, Category, Link, Text
from protocols.superfeedr.ids import author_id

JsonObject: TypeAlias = dict[str, Any]

_PICTURES = frozenset({"picture", "image", "thumbnail"})


def seconds(moment: datetime) -> int:
    return floor(moment.timestamp())


def put_date(target: JsonObject, key: str, moment: datetime | None) -> None:
    if moment is not None:
        target[key] = seconds(moment)


def put_text(target: JsonObject, key: str, text: Text | None) -> None:
    if text is not None:
        target[key] = text.value


def put_links(target: JsonObject, links: Iterable[Link]) -> None:
    """Every link by its relation, and the first alternate as the permalink."""
    grouped: dict[str, list[JsonObject]] = {}
    for link in links:
        each: JsonObject = {
            "title": link.title,
            "rel": link.rel,
            "href": link.href,
            "type": link.type,
        }
        if link.length is not None:
            each["length"] = link.length
        if link.rel in grouped:
            grouped[link.rel].append(each)
        else:
            grouped[link.rel] = [each]
    if "alternate" in grouped:
        target["permalinkUrl"] = grouped["alternate"][0]["href"]
    if grouped:
        target["standardLinks"] = grouped


def permalink(links: Iterable[Link]) -> str:
    return next((link.href for link in links if link.rel == "alternate"), "")


def actor_object(person: Author) -> JsonObject:
    """Superfeedr's actors had no mail address, and ours have none."""
    picture = (link.href for link in person.links if link.rel in _PICTURES)
    facts = {
        "displayName": person.name,
        "id": author_id(person),
        "title": person.title,
        "permalinkUrl": permalink(person.links) or person.uri,
        "image": next(picture, ""),
        "objectType": last_segment(person.object_types),
    }
    return {key: value for key, value in facts.items() if value}


def last_segment(uris: Sequence[str]) -> str:
    """Of the last one: ``http://activitystrea.ms/schema/1.0/place`` is ``place``."""
    return uris[-1].rstrip("/").rpartition("/")[2] if uris else ""


def category_object(category: Category) -> JsonObject:
    facts = {
        "term": category.term,
        "scheme": category.scheme,
        "label": category.label,
    }
    return {key: value for key, value in facts.items() if value}
