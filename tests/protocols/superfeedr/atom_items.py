"""Atom entries as the JSON items that say the same, by the schema's own mapping.

Written from Superfeedr's schema and our notes on it, not from what renders.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.golden import LANGUAGE, attributes, find, read_extensions, texts

Item = dict[str, Any]

PICTURES = ("picture", "image", "thumbnail")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def item_of(entry: Any) -> Item:
    """An ``atom:entry`` as an item."""
    people = [_actor(each) for each in find(entry, "atom:author")]
    objects = [_object(each) for each in find(entry, "as:object")]
    verbs, categories = texts(entry, "as:verb"), attributes(entry, "atom:category")
    pictures = [
        each["href"]
        for each in attributes(entry, "atom:link")
        if each["rel"] == "image"
    ]
    more = {
        "authors": people[1:],
        "contributors": [_actor(each) for each in find(entry, "atom:contributor")],
        "categories": [each for each in categories if len(each) > 1],
        "verbs": verbs[:-1],
        "objectTypes": texts(entry, "as:object-type"),
        "objects": objects[1:],
        "rights": _one(texts(entry, "atom:rights")),
        "summaryType": _type(entry, "atom:summary"),
        "contentType": _type(entry, "atom:content"),
    }
    extensions = {**read_extensions(entry), **_known(more)}
    return {
        "title": _one(texts(entry, "atom:title")),
        **_dates(entry),
        **_texts(entry, ("id", "summary", "content")),
        **_links(entry),
        **_known(
            {
                "image": _one(pictures[:1]),
                "verb": _last_segment(verbs),
                "geo": _geo(entry),
                "language": entry.get(LANGUAGE),
            }
        ),
        **({"categories": [each["term"] for each in categories]} if categories else {}),
        **_only("actor", people[:1]),
        **_only("object", objects[:1]),
        **_only("source", [_source(each) for each in find(entry, "atom:source")]),
        **({"extensions": extensions} if extensions else {}),
    }


def deletion_of(tombstone: Any) -> Item:
    when = _seconds(tombstone.get("when"))
    return {"id": tombstone.get("ref"), "verb": "delete", "updated": when}


def head_of(feed: Any) -> Item:
    """What a document says of itself: status, feed head, no items."""
    [status] = find(feed, "sf:status")
    return {"status": _status(status), **_feed(feed)}


def _source(source: Any) -> Item:
    found = [_status(each) for each in find(source, "sf:status")]
    return {**_feed(source), **_only("status", found)}


def _feed(feed: Any) -> Item:
    more = {
        "authors": [_actor(each) for each in find(feed, "atom:author")],
        "contributors": [_actor(each) for each in find(feed, "atom:contributor")],
        "categories": attributes(feed, "atom:category"),
        "language": feed.get(LANGUAGE),
        **{name: _one(texts(feed, f"atom:{name}"))
           for name in ("rights", "generator", "icon", "logo")},
    }  # fmt: skip
    issued = [_seconds(each) for each in texts(feed, "dcterms:issued")]
    extensions = {**read_extensions(feed), **_known(more)}
    return {
        "title": _one(texts(feed, "atom:title")),
        "id": _one(texts(feed, "atom:id")) or "",  # JSON says so of one without
        "updated": None,
        **_dates(feed),
        **({"published": issued[0]} if issued else {}),
        **_texts(feed, ("subtitle",)),
        **_links(feed),
        **({"extensions": extensions} if extensions else {}),
    }


def _status(status: Any) -> Item:
    [http] = find(status, "sf:http")
    code = http.get("code")
    return {
        "code": None if code is None else int(code),
        "http": http.text or "",
        "feed": status.get("feed"),
        **{
            name: _seconds(text)
            for tag, name in (
                ("next_fetch", "nextFetch"),
                ("last_fetch", "lastFetch"),
                ("last_parse", "lastParse"),
                ("last_maintenance_at", "lastMaintenanceAt"),
            )
            for text in texts(status, f"sf:{tag}")
        },
        **{
            name: float(text)
            for tag, name in (
                ("period", "period"),
                ("entries_count_since_last_maintenance",
                 "entriesCountSinceLastMaintenance"),
                ("velocity", "velocity"),
                ("popularity", "popularity"),
                ("porn_rank", "pornRank"),
                ("bozo_rank", "bozoRank"),
            )
            for text in texts(status, f"sf:{tag}")
        },
        **_only(
            "generatedIds",
            [text == "true" for text in texts(status, "sf:generated_ids")],
        ),
        **_only("title", texts(status, "sf:title")),
        **_only("digest", [True] if status.get("digest") == "true" else []),
    }  # fmt: skip


def _actor(person: Any) -> Item:
    links = attributes(person, "as:link")
    pages = [each["href"] for each in links if each["rel"] == "alternate"]
    pictures = [each["href"] for each in links if each["rel"] in PICTURES]
    return _known(
        {
            "displayName": _one(texts(person, "atom:name")),
            "id": _one(texts(person, "as:id")),
            "title": _one(texts(person, "as:title")),
            "permalinkUrl": _one([*pages, *texts(person, "atom:uri")][:1]),
            "image": _one(pictures[:1]),
            "objectType": _last_segment(texts(person, "as:object-type")),
        }
    )


def _object(element: Any) -> Item:
    links = attributes(element, "atom:link")
    pages = [each["href"] for each in links if each["rel"] == "alternate"]
    people = [_actor(each) for each in find(element, "atom:author")]
    return {
        **_known(
            {
                "objectType": _last_segment(texts(element, "as:object-type")),
                "permalinkUrl": _one(pages[:1]),
            }
        ),
        **_dates(element),
        **_texts(element, ("id", "title", "content")),
        **({"actor": people[0]} if people else {}),
    }


def _links(element: Any) -> Item:
    grouped: dict[str, list[Item]] = {}
    for link in attributes(element, "atom:link"):
        length = {"length": int(link["length"])} if "length" in link else {}
        grouped.setdefault(link["rel"], []).append({"title": "", **link, **length})
    pages = grouped.get("alternate", ())
    return {
        **({"standardLinks": grouped} if grouped else {}),
        **({"permalinkUrl": pages[0]["href"]} if pages else {}),
    }


def _dates(element: Any) -> Item:
    return {
        name: _seconds(text)
        for name in ("published", "updated")
        for text in texts(element, f"atom:{name}")
    }


def _texts(element: Any, names: tuple[str, ...]) -> Item:
    """XHTML is what is inside its ``div``; the tests have it as text only.

    Content that does not even name a type is there for Atom's sake only.
    """
    return {
        name: "".join(each.itertext())
        for name in names
        for each in find(element, f"atom:{name}")
        if name != "content" or each.attrib
    }


def _geo(entry: Any) -> Item | None:
    point = _one(texts(entry, "geo:point"))
    if point is None:
        return None
    return {"type": "point", "coordinates": [*map(float, point.split())]}


def _type(entry: Any, path: str) -> str | None:
    """What is said of it beyond that it is HTML."""
    types = [each.get("type") for each in find(entry, path)]
    return _one([each for each in types if each != "html"])


def _seconds(text: str) -> int:
    return int((datetime.fromisoformat(text) - EPOCH).total_seconds() // 1)


def _last_segment(uris: list[str]) -> str:
    return uris[-1].rstrip("/").split("/")[-1] if uris else ""


def _only(name: str, found: list[Any]) -> Item:
    return {name: _one(found)} if found else {}


def _one(found: list[Any]) -> Any:
    assert len(found) <= 1
    return found[0] if found else None


def _known(facts: Item) -> Item:
    return {name: value for name, value in facts.items() if value}
