"""Enclosures as audio, video and image blocks (ActivityStreams, with SCP's members)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from protocols.enclosures import Captions, EnclosedFile, seconds_of
from protocols.model import Entry, Extensions, Feed, Link
from protocols.scp.addresses import page_address
from protocols.scp.blocks import Block, captions_block
from protocols.text import collapse

MOST_CHAPTERS: Final = 200
_PICTURES: Final = ("image", "thumbnail", "picture", "icon")
_UNKNOWN_TYPES: Final = {"audio": "audio/mpeg", "video": "video/mp4"}


def media_blocks(
    files: Sequence[EnclosedFile], entry: Entry, feed: Feed, name: str
) -> list[Block]:
    """One for each recording, with all its sources, and one for each picture.

    Files of one kind are one recording, unless they have titles or durations of their
    own ("two or more attachments with the exact same title are considered alternate
    representations of the same thing", JSON Feed 1.1). ``name`` is what those are
    called that have no title.
    """
    files = [each for each in files if page_address(each.href)]
    blocks = [
        _recording_block(kind, sources, entry, feed, name)
        for kind in ("audio", "video")
        for sources in _recordings(each for each in files if each.kind == kind)
    ]
    for file in files:
        if file.kind == "image":
            url = page_address(file.href)
            blocks.append({"type": "image", "url": url, "alt": file.title})
    return blocks


def _recordings(files: Iterable[EnclosedFile]) -> list[list[EnclosedFile]]:
    found: list[list[EnclosedFile]] = []
    for file in files:
        for sources in found:
            lengths = {each.seconds for each in (*sources, file)} - {0}
            if sources[0].title == file.title and len(lengths) <= 1:
                sources.append(file)
                break
        else:
            found.append([file])
    return found


def _recording_block(
    kind: str, sources: list[EnclosedFile], entry: Entry, feed: Feed, name: str
) -> Block:
    first = sources[0]
    urls = [
        {
            "href": page_address(each.href),
            "mediaType": each.type if "/" in each.type else _UNKNOWN_TYPES[kind],
        }
        for each in sources
    ]
    block: Block = {"type": kind, "name": first.title or name, "url": urls}
    if duration := duration_of(sources):
        block["duration"] = duration
    if kind == "video":
        # "width, height" and "captions" are members of video blocks only.
        block |= _picture_size(sources)
        captions = {one.url: one for each in sources for one in each.captions}
        if listed := _captions(captions.values()):
            block["captions"] = listed
    poster = next((each.poster for each in sources if page_address(each.poster)), "")
    if icon := page_address(poster) or icon_of(entry, feed):
        block["icon"] = {"type": "Image", "url": icon}
    if kind == "audio":
        if feed.title:
            block["attributedTo"] = feed.title
        if series := series_of(entry.extensions) or feed.title:
            block["partOf"] = series
    if chapters := _chapters(entry.extensions):
        block["chapters"] = chapters
    return block


def _picture_size(sources: Iterable[EnclosedFile]) -> Block:
    """Of the first source that tells both sides, else what the first tells."""
    told = [each for each in sources if each.width or each.height]
    whole = [each for each in told if each.width and each.height]
    for each in (whole or told)[:1]:
        sides = {"width": each.width, "height": each.height}
        return {side: pixels for side, pixels in sides.items() if pixels}
    return {}


def _captions(listed: Iterable[Captions]) -> list[Block]:
    return [
        captions_block(url, each.language, each.label)
        for each in listed
        if (url := page_address(each.url))
    ]


def icon_of(entry: Entry, feed: Feed) -> str:
    """The entry's picture, else the feed's; "" if there is none."""
    return _first_picture(entry.links) or page_address(feed.logo)


def series_of(extensions: Extensions) -> str:
    """``Season 3``, or "" if that is not said."""
    season = _words(_member(extensions, "itunes", "season"))
    return f"Season {season}" if season.isdigit() else season


def duration_of(files: Iterable[EnclosedFile]) -> str:
    """``PT1H2M3S`` (ISO 8601), of the first that says it; "" if none does."""
    return iso_duration(next((each.seconds for each in files if each.seconds), 0))


def iso_duration(seconds: int) -> str:
    """ "" of none."""
    if not seconds:
        return ""
    hours, rest = divmod(seconds, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    return "PT" + "".join(f"{number}{unit}" for number, unit in parts if number)


def _chapters(extensions: Extensions) -> list[dict[str, object]]:
    """Podlove's simple chapters, as far as they have a time and a title."""
    group = _member(extensions, "psc", "chapters")
    listed = group.get("chapter") if isinstance(group, Mapping) else None
    chapters = listed if isinstance(listed, list) else [listed]
    return [
        {"time": seconds_of(each.get("start")), "title": title}
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
