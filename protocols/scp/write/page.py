"""An entry as a page of a collection (SCP, "Page Schema").

Enclosures are audio, video and image blocks (ActivityStreams, with SCP's members).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from protocols.enclosures import (
    Captions,
    EnclosedFile,
    enclosed_files,
    name_of_file,
    seconds_of,
)
from protocols.languages import language_tag, reduce_language
from protocols.model import Author, Entry, Extensions, Feed, Link, Text
from protocols.safe_urls import display_name
from protocols.scp.collection import page_address, timestamp
from protocols.scp.write.blocks import (
    Block,
    blocks_of_html,
    blocks_of_text,
    captions_block,
    limit_blocks,
    text_of_block,
)
from protocols.text import collapse, text_of_html

MOST_CHAPTERS: Final = 200
_PICTURES: Final = ("image", "thumbnail", "picture", "icon")
_UNKNOWN_TYPES: Final = {"audio": "audio/mpeg", "video": "video/mp4"}


def media_blocks(
    files: Sequence[EnclosedFile], entry: Entry, feed: Feed, name: str
) -> list[Block]:
    """One block for each recording, with all its sources, and one for each picture.

    Files of one kind are one recording, unless they differ in title or duration ("two
    or more attachments with the exact same title are considered alternate
    representations of the same thing", JSON Feed 1.1). ``name`` is used for recordings
    without a title.
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
    """The size of the first source with both sides, else with one."""
    sized = [each for each in sources if each.width or each.height]
    whole = [each for each in sized if each.width and each.height]
    for each in (whole or sized)[:1]:
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
    """``Season 3``, or "" if there is none."""
    season = _text_of_value(_member(extensions, "itunes", "season"))
    return f"Season {season}" if season.isdigit() else season


def duration_of(files: Iterable[EnclosedFile]) -> str:
    """The first known duration as ``PT1H2M3S`` (ISO 8601); "" if none is known."""
    return iso_duration(next((each.seconds for each in files if each.seconds), 0))


def iso_duration(seconds: int) -> str:
    """The duration in ISO 8601; "" for 0."""
    if not seconds:
        return ""
    hours, rest = divmod(seconds, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    return "PT" + "".join(f"{number}{unit}" for number, unit in parts if number)


def _chapters(extensions: Extensions) -> list[dict[str, object]]:
    """The chapters (Podlove's simple chapters) that have a time and a title."""
    group = _member(extensions, "psc", "chapters")
    listed = group.get("chapter") if isinstance(group, Mapping) else None
    chapters = listed if isinstance(listed, list) else [listed]
    return [
        {"time": seconds_of(each.get("start")), "title": title}
        for each in chapters[:MOST_CHAPTERS]
        if isinstance(each, Mapping) and (title := _text_of_value(each.get("title")))
    ]


def _member(extensions: Extensions, prefix: str, name: str) -> Any:
    group = extensions.get(prefix)
    return group.get(name) if isinstance(group, Mapping) else None


def _text_of_value(value: object) -> str:
    return collapse(value) if isinstance(value, str) else ""


def _first_picture(links: Iterable[Link]) -> str:
    for link in links:
        if link.rel in _PICTURES and (url := page_address(link.href)):
            return url
    return ""


TITLE_LENGTH: Final = 80
DESCRIPTION_LENGTH: Final = 300
"""Characters of a description that is made from the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """What a page does not get from its entry."""

    feed: Feed
    url: str
    modified: datetime
    language: str  # if neither entry nor feed has one


def page_url(entry: Entry) -> str:
    """The page that an entry is about; "" if it names none."""
    for link in entry.links:
        if link.rel == "alternate" and (url := page_address(link.href)):
            return url
    return ""


def page_line(entry: Entry, context: PageContext) -> bytes:
    """One line of a collection, with its line feed.

    The same entry in the same context gives the same bytes.
    """
    content = _blocks_of(entry.content)
    blocks = content or _blocks_of(entry.summary)
    text = next((found for each in blocks if (found := text_of_block(each))), "")
    name = collapse(entry.title) or shorten(text, TITLE_LENGTH)
    files = enclosed_files(entry)
    blocks += media_blocks(files, entry, context.feed, name)
    _name_media(blocks, name)
    title = name or context.url
    summary = _summary(entry) if content else ""
    description = shorten(summary or _words(blocks), DESCRIPTION_LENGTH) or title
    page: dict[str, object] = {
        "url": context.url,
        "title": title,
        "description": description,
    }
    if author := author_name(entry.authors) or author_name(context.feed.authors):
        page["author"] = author
    if entry.published is not None:
        page["published"] = timestamp(entry.published)
    page["modified"] = timestamp(context.modified)
    language = language_tag(entry.language) or context.feed.language
    page["language"] = reduce_language(language) or context.language
    if schema := _schema(entry, files, context, page):
        page["schema"] = schema
    page["content"] = limit_blocks(blocks) or [{"type": "text", "text": description}]
    return orjson.dumps(page, option=orjson.OPT_APPEND_NEWLINE)


def _name_media(blocks: list[Block], name: str) -> None:
    """Name audio and video after the page or the file: ``name`` is required.

    A URL is never used as a name.
    """
    for block in blocks:
        if block["type"] in ("audio", "video") and not block["name"]:
            block["name"] = (
                name or name_of_file(block["url"][0]["href"]) or block["type"]
            )


def _blocks_of(text: Text | None) -> list[Block]:
    if text is None:
        return []
    if text.type in ("html", "xhtml", "text/html", "application/xhtml+xml"):
        return blocks_of_html(text.value)
    is_text = text.type == "text" or text.type.lower().startswith("text/")
    return blocks_of_text(text.value) if is_text else []


def _words(blocks: Sequence[Block]) -> str:
    """The beginning of a page, without its headings."""
    said: list[str] = []
    length = 0
    for block in blocks:
        if block["type"] != "heading" and (text := text_of_block(block)):
            said.append(text)
            length += len(text)
            if length >= DESCRIPTION_LENGTH:
                break
    return " ".join(said)


def _summary(entry: Entry) -> str:
    """The text of a summary, or its beginning; "" if there is none."""
    summary = entry.summary
    if summary is None or summary.type not in ("html", "xhtml", "text"):
        return ""
    if summary.type == "text":
        return collapse(summary.value)
    if "<" not in summary.value:
        return text_of_html(summary.value)
    return _words(blocks_of_html(summary.value))


def shorten(text: str, length: int) -> str:
    """Cut a text to one line of at most ``length``, at the end of a word."""
    line = " ".join(text[: length * 2].split())
    if len(line) <= length:
        return line
    return line[:length].rpartition(" ")[0] or line[:length]


def author_name(people: tuple[Author, ...]) -> str:
    """The first author's name; "" if none has a name."""
    for person in people:
        if name := display_name(person):
            return name
    return ""


def _schema(
    entry: Entry,
    files: Sequence[EnclosedFile],
    context: PageContext,
    page: dict[str, object],
) -> dict[str, object]:
    """The page in schema.org's terms, if they say more than the page does; else {}."""
    kind = _kind(files)
    more = _more(entry, context, page)
    if kind == "BlogPosting" and not more:
        return {}
    named = "headline" if kind == "BlogPosting" else "name"
    more = {"@type": kind, named: page["title"], **more}
    if kind != "BlogPosting":
        more |= _recorded(kind, entry, context, page)
        if duration := duration_of(files):
            is_video = kind == "VideoObject"
            more["duration" if is_video else "timeRequired"] = duration
    return {"@context": "https://schema.org", **more}


def _more(
    entry: Entry, context: PageContext, page: dict[str, object]
) -> dict[str, object]:
    """The members that pages of any kind may have."""
    more: dict[str, object] = {}
    tag = language_tag(entry.language) or language_tag(context.feed.language)
    if tag and tag != page["language"]:
        more["inLanguage"] = tag
    words = dict.fromkeys(each.label or each.term for each in entry.categories)
    if keywords := [each for each in words if each]:
        more["keywords"] = keywords
    if (
        len(names := [name for each in entry.authors if (name := display_name(each))])
        > 1
    ):
        more["author"] = [{"@type": "Person", "name": name} for name in names]
    if entry.id and not page_url(entry):
        more["identifier"] = entry.id
    return more


def _recorded(
    kind: str, entry: Entry, context: PageContext, page: dict[str, object]
) -> dict[str, object]:
    """The members of an episode or a video that other pages lack."""
    more: dict[str, object] = {}
    is_video = kind == "VideoObject"
    if not is_video and context.feed.title:
        series = {"@type": "PodcastSeries", "name": context.feed.title}
        more["partOfSeries"] = series
    if is_video:
        more["uploadDate"] = page.get("published", page["modified"])
        if icon := icon_of(entry, context.feed):
            more["thumbnailUrl"] = icon
    return more


def _kind(files: Iterable[EnclosedFile]) -> str:
    kinds = {each.kind for each in files}
    if "audio" in kinds:
        return "PodcastEpisode"
    return "VideoObject" if "video" in kinds else "BlogPosting"
