"""Enclosures as audio, video and image blocks (ActivityStreams, with SCP's members)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from protocols.model import Entry, Extensions, Feed, Link
from protocols.scp.addresses import page_address
from protocols.scp.blocks import Block
from protocols.text import collapse

MOST_CHAPTERS = 200
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2})(?:\.\d+)?")
_PICTURES = ("image", "thumbnail", "picture", "icon")


def media_blocks(entry: Entry, feed: Feed) -> list[Block]:
    """One for each kind of enclosure, and one for each picture among them."""
    enclosures = [link for link in entry.links if link.rel == "enclosure"]
    blocks = []
    for kind in ("audio", "video"):
        urls = [
            {"href": url, "mediaType": link.type}
            for link in enclosures
            if link.type.startswith(f"{kind}/") and (url := page_address(link.href))
        ]
        if urls:
            blocks.append(_media_block(kind, urls, entry, feed))
    for link in enclosures:
        if link.type.startswith("image/") and (url := page_address(link.href)):
            blocks.append({"type": "image", "url": url, "alt": collapse(link.title)})
    return blocks


def _media_block(
    kind: str, urls: list[dict[str, str]], entry: Entry, feed: Feed
) -> Block:
    block: Block = {"type": kind, "name": entry.title or urls[0]["href"], "url": urls}
    if duration := duration_of(entry.extensions):
        block["duration"] = duration
    if icon := icon_of(entry, feed):
        block["icon"] = {"type": "Image", "url": icon}
    if kind == "audio":
        if feed.title:
            block["attributedTo"] = feed.title
        if series := series_of(entry.extensions) or feed.title:
            block["partOf"] = series
    if chapters := _chapters(entry.extensions):
        block["chapters"] = chapters
    return block


def icon_of(entry: Entry, feed: Feed) -> str:
    """The entry's picture, else the feed's; "" if there is none."""
    return _first_picture(entry.links) or page_address(feed.logo)


def series_of(extensions: Extensions) -> str:
    """``Season 3``, or "" if that is not said."""
    season = _words(_member(extensions, "itunes", "season"))
    return f"Season {season}" if season.isdigit() else season


def duration_of(extensions: Extensions) -> str:
    """``PT1H2M3S`` (ISO 8601), or "" if none is given or it cannot be read."""
    stated = _words(_member(extensions, "itunes", "duration"))
    if not stated:
        content = _member(extensions, "media", "content")
        first = content[0] if isinstance(content, list) and content else content
        stated = _words(first.get("duration")) if isinstance(first, Mapping) else ""
    total = _seconds(stated)
    return iso_duration(total) if total else ""


def iso_duration(seconds: int) -> str:
    hours, rest = divmod(seconds, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    return "PT" + "".join(f"{number}{unit}" for number, unit in parts if number)


def _seconds(text: str) -> int:
    """Of ``3723``, ``62:03`` or ``1:02:03``; 0 for what is none of them."""
    text = text.strip()
    whole = text.partition(".")[0]
    if whole.isascii() and whole.isdigit() and len(whole) <= 7:
        return int(whole)
    found = _CLOCK.fullmatch(text)
    if found is None:
        return 0
    return int(found[1] or 0) * 3_600 + int(found[2]) * 60 + int(found[3])


def _chapters(extensions: Extensions) -> list[dict[str, object]]:
    """Podlove's simple chapters, as far as they have a time and a title."""
    group = _member(extensions, "psc", "chapters")
    listed = group.get("chapter") if isinstance(group, Mapping) else None
    chapters = listed if isinstance(listed, list) else [listed]
    return [
        {"time": _seconds(_words(each.get("start"))), "title": title}
        for each in chapters[:MOST_CHAPTERS]
        if isinstance(each, Mapping) and (title := _words(each.get("title")))
    ]


def _member(extensions: Extensions, prefix: str, name: str) -> Any:
    group = extensions.get(prefix)
    return group.get(name) if isinstance(group, Mapping) else None


def _words(value: object) -> str:
    return collapse(value) if isinstance(value, str) else ""


def _first_picture(links: Iterable[Link]) -> str:
    for link in links:
        if link.rel in _PICTURES and (url := page_address(link.href)):
            return url
    return ""
