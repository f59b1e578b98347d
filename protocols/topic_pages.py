"""Render a feed as this hub has it, newest first, under ``/topics/{id}``.

In ``.atom`` and ``.normalized.json`` entries are rendered as in notifications;
``.json`` is JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/), where a key whose
value is not known is absent unless the format requires it. The pages are linked as RFC
5005 says of paged feeds: ``first``, and ``next`` while there are more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self, TypeAlias

import orjson
from msgspec import structs

from protocols.enclosures import enclosed_files
from protocols.languages import language_tag
from protocols.model import Author, Entry, Feed, Link, Notification, Status, Text
from protocols.superfeedr.atom_notifications import (
    ACTIVITY,
    ATOM,
    ATOM_TYPE,
    put_head,
    render_entries,
)
from protocols.superfeedr.atom_values import language_attribute, media_type, put_people
from protocols.superfeedr.json_notifications import JSON_TYPE, feed_object, render_items
from protocols.superfeedr.rendered_values import feed_id, updated_of
from protocols.text import text_of_html
from protocols.xml_syntax import XmlWriter

JSON_FEED_TYPE: Final = "application/feed+json"
VERSION: Final = "https://jsonfeed.org/version/1.1"
UNKNOWN_MEDIA: Final = "application/octet-stream"
"""The type of an attachment of unknown type: "mime_type (required, string)"."""

_MARKUP: Final = frozenset({"html", "xhtml", "text/html"})
_PICTURES: Final = ("image", "picture", "thumbnail")
_UTC_SECONDS: Final = orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS
JsonObject: TypeAlias = dict[str, Any]


def render_json_feed(
    head: Feed,
    entries: Iterable[Entry],
    *,
    url: str,
    hub: str,
    title: str,
    next_url: str | None = None,
) -> bytes:
    """``url`` is this page's own; ``title`` is used if the feed has none."""
    document = {
        "version": VERSION,
        "title": head.title or title,
        "home_page_url": _href(head.links, "alternate"),
        "feed_url": url,
        "description": text_of_html(head.subtitle),
        "next_url": next_url,
        "icon": head.logo,
        "favicon": head.icon,
        "authors": _authors(head.authors),
        "language": language_tag(head.language),
        "hubs": [{"type": "WebSub", "url": hub}],
    }
    known = _known(document)
    return orjson.dumps(
        {**known, "items": [item_object(each) for each in entries]},
        option=_UTC_SECONDS,
    )


def item_object(entry: Entry) -> JsonObject:
    """An entry as an item.

    "id (required, string)" and "one or both must be present" of the contents.
    """
    links = entry.links
    item = {
        "url": _href(links, "alternate"),
        "external_url": _href(links, "related"),
        "title": entry.title,
        **_contents(entry),
        "image": _href(links, *_PICTURES),
        "banner_image": _href(links, "banner"),
        "date_published": entry.published,
        "date_modified": entry.updated,
        "authors": _authors(entry.authors),
        "tags": [each.label or each.term for each in entry.categories],
        "language": language_tag(entry.language),
        "attachments": _attachments(entry),
    }
    return {"id": entry.id, **_known(item), **_required(item)}


def _contents(entry: Entry) -> JsonObject:
    """The content and the summary; without content the summary takes its place."""
    content = entry.content or entry.summary
    if content is None:
        return {}
    name = "content_html" if content.type in _MARKUP else "content_text"
    summary = entry.summary if entry.content else None
    return {name: content.value, "summary": _plain(summary) if summary else ""}


def _required(item: JsonObject) -> JsonObject:
    """The title as content if there is no content at all."""
    if item.get("content_html") or item.get("content_text"):
        return {}
    return {"content_text": item["title"]}


def _plain(text: Text) -> str:
    """The text without markup.

    "summary (optional, string) is a plain text sentence or two".
    """
    return text_of_html(text.value) if text.type in _MARKUP else text.value


def _authors(people: Sequence[Author]) -> list[JsonObject]:
    """The authors that have any value.

    "If you provide an author object, then at least one is required".
    """
    found = [
        _known(
            {
                "name": each.name,
                "url": each.uri or _href(each.links, "alternate"),
                "avatar": _href(each.links, *_PICTURES),
            }
        )
        for each in people
    ]
    return [each for each in found if each]


def _attachments(entry: Entry) -> list[JsonObject]:
    """The enclosures, without further sources, which would be separate attachments."""
    lengths = {it.href: it.length for it in entry.links if it.rel == "enclosure"}
    return [
        _known(
            {
                "url": file.href,
                "mime_type": media_type(file.type) or UNKNOWN_MEDIA,
                "title": file.title,
                "size_in_bytes": lengths[file.href],
                "duration_in_seconds": file.seconds or None,
            }
        )
        for file in enclosed_files(entry)
        if file.is_linked
    ]


def _href(links: Iterable[Link], *rels: str) -> str:
    return next((link.href for link in links if link.rel in rels), "")


def _known(facts: JsonObject) -> JsonObject:
    return {key: value for key, value in facts.items() if value not in (None, "", [])}


_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = re.compile(r"(-?[0-9]{1,15})-([0-9]{1,18})")
_OURS: Final = frozenset({"self", "hub", "first", "last", "next", "previous", "prev"})
"""Relations whose links in the source's head do not apply to this page."""


class TopicFormat(StrEnum):
    """The format of a page, by the ending of its URL."""

    ATOM = "atom"
    NORMALIZED = "normalized.json"  # with the keys of notifications
    JSON_FEED = "json"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self]


_MEDIA_TYPES: Final = {
    TopicFormat.ATOM: ATOM_TYPE,
    TopicFormat.NORMALIZED: JSON_TYPE,
    TopicFormat.JSON_FEED: JSON_FEED_TYPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlace:
    """A place in a list, as in ``before`` of a page's URL: milliseconds and entry
    id.
    """

    dated: datetime
    entry: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a place. Raises ValueError."""
        found = _PLACE.fullmatch(text)
        if found is None:
            raise ValueError(text)
        try:
            dated = _START + timedelta(milliseconds=int(found[1]))
        except OverflowError as error:
            raise ValueError(text) from error
        return cls(dated=dated, entry=int(found[2]))

    def __str__(self) -> str:
        milliseconds = (self.dated - _START) // timedelta(milliseconds=1)
        return f"{milliseconds}-{self.entry}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage:
    """One page. ``url`` is the topic's, without a query; ``source`` the publisher's
    feed.

    ``dates`` has a date for each entry, used if the entry has none of its own;
    ``undated`` is used for the page if it has no entries.
    """

    url: str
    hub: str
    source: str
    feed: Feed
    entries: tuple[Entry, ...]
    dates: tuple[datetime, ...]
    undated: datetime
    before: str = ""
    limit: int = 0
    is_default_limit: bool = True
    next: str | None = None

    @property
    def self_url(self) -> str:
        return self._at(self.before)

    @property
    def first_url(self) -> str:
        return self._at("")

    @property
    def next_url(self) -> str | None:
        return None if self.next is None else self._at(self.next)

    def _at(self, before: str) -> str:
        parts = [f"before={before}"] if before else []
        if not self.is_default_limit:
            parts.append(f"limit={self.limit}")
        return f"{self.url}?{'&'.join(parts)}" if parts else self.url


def render_topic_page(page: TopicPage, format: TopicFormat) -> bytes:
    head = structs.replace(page.feed, links=_links(page, format))
    if format is TopicFormat.ATOM:
        return _render_atom(page, head)
    if format is TopicFormat.JSON_FEED:
        return _render_json_feed(page)
    return _render_normalized(page, head)


def _links(page: TopicPage, format: TopicFormat) -> tuple[Link, ...]:
    """The page's own links, and the source's except those of the same relations."""
    own = [
        Link(href=page.self_url, rel="self", type=format.media_type.partition(";")[0]),
        Link(href=page.hub, rel="hub", type=""),
        Link(href=page.first_url, rel="first", type=""),
        Link(href=page.source, rel="via", type=""),
    ]
    if page.next_url:
        own.insert(3, Link(href=page.next_url, rel="next", type=""))
    return (*own, *(link for link in page.feed.links if link.rel not in _OURS))


def notified_links(links: Iterable[Link], topic: str, hub: str) -> tuple[Link, ...]:
    """The links of a notification to a subscriber of such a page at this hub.

    They are the page's own, the source's URL as ``via``, and the source's other links.
    """
    given = tuple(links)
    via = [
        structs.replace(link, rel="via", type="")
        for link in given
        if link.rel == "self"
    ]
    return (
        Link(href=topic, rel="self", type=""),
        Link(href=hub, rel="hub", type=""),
        *via[:1],
        *(link for link in given if link.rel not in _OURS),
    )


def _notification(page: TopicPage, head: Feed) -> Notification:
    """A notification with the page's entries, in the order of the list."""
    updated = page.feed.updated or max(
        (at for _, at in _dated(page)), default=page.undated
    )
    return Notification(
        topic=page.url,
        hub=page.hub,
        status=Status(),
        feed=structs.replace(head, updated=updated),
        entries=page.entries,
    )


def _dated(page: TopicPage) -> Iterator[tuple[Entry, datetime]]:
    for entry, known in zip(page.entries, page.dates, strict=True):
        yield entry, updated_of(entry) or known


def _render_atom(page: TopicPage, head: Feed) -> bytes:
    """Render the page as Atom.

    It has no status, which would change with every poll. The date of an entry without
    one does not change when other entries come.
    """
    entries = tuple(structs.replace(entry, updated=at) for entry, at in _dated(page))
    notification = _notification(replace(page, entries=entries), head)
    writer = XmlWriter()
    writer.put(
        b'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="%b" xmlns:as="%b"%b>'
        % (ATOM.encode(), ACTIVITY.encode(), language_attribute(head.language))
    )
    id = feed_id(page.feed, page.url) or page.url
    put_head(writer, head, id=id, updated=notification.feed.updated)
    if not head.authors:
        put_people(writer, b"author", [Author(name=head.title or page.url)])
    return b"%b%b</feed>\n" % (writer.finish(), render_entries(notification))


def _render_normalized(page: TopicPage, head: Feed) -> bytes:
    """Items as in notifications; other members are named as in JSON Feed."""
    notification = _notification(page, head)
    document: dict[str, object] = {
        **feed_object(notification.feed, id=feed_id(page.feed, page.url)),
        "feed_url": page.self_url,
        "hubs": [{"type": "WebSub", "url": page.hub}],
        "items": orjson.Fragment(render_items(notification)),
    }
    if page.next_url:
        document["next_url"] = page.next_url
    return orjson.dumps(document)


def _render_json_feed(page: TopicPage) -> bytes:
    return render_json_feed(
        page.feed,
        page.entries,
        url=page.self_url,
        hub=page.hub,
        title=page.source,
        next_url=page.next_url,
    )
