"""An entry as a page of a collection (SCP, "Page Schema")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from protocols.enclosures import EnclosedFile, enclosed_files, name_of_file
from protocols.languages import language_tag, reduce_language
from protocols.model import Author, Entry, Feed, Text
from protocols.people import display_name
from protocols.scp.addresses import page_address
from protocols.scp.blocks import (
    Block,
    blocks_of_html,
    blocks_of_text,
    limit_blocks,
    text_of_block,
)
from protocols.scp.media import duration_of, icon_of, media_blocks
from protocols.text import collapse, text_of_html

TITLE_LENGTH: Final = 80
DESCRIPTION_LENGTH: Final = 300
"""Characters, where one is made of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """What a page is given from outside of its entry."""

    feed: Feed
    url: str
    modified: datetime
    language: str  # where neither entry nor feed names one


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
    """``name`` is required of audio and video: what has no title is called like its
    page, or its file, but never by an address."""
    for block in blocks:
        if block["type"] in ("audio", "video") and not block["name"]:
            block["name"] = (
                name or name_of_file(block["url"][0]["href"]) or block["type"]
            )


def timestamp(moment: datetime) -> str:
    """``2026-01-02T03:04:05Z``: one form only, so that strings can be compared."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:19] + "Z"


def _blocks_of(text: Text | None) -> list[Block]:
    if text is None:
        return []
    if text.type in ("html", "xhtml", "text/html", "application/xhtml+xml"):
        return blocks_of_html(text.value)
    is_text = text.type == "text" or text.type.lower().startswith("text/")
    return blocks_of_text(text.value) if is_text else []


def _words(blocks: Sequence[Block]) -> str:
    """How a page begins, its headings left out."""
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
    """What a summary says beside the content, as far as it is read."""
    summary = entry.summary
    if summary is None or summary.type not in ("html", "xhtml", "text"):
        return ""
    if summary.type == "text":
        return collapse(summary.value)
    if "<" not in summary.value:
        return text_of_html(summary.value)
    return _words(blocks_of_html(summary.value))


def shorten(text: str, length: int) -> str:
    """At the end of a word, in one line."""
    line = " ".join(text[: length * 2].split())
    if len(line) <= length:
        return line
    return line[:length].rpartition(" ")[0] or line[:length]


def author_name(people: tuple[Author, ...]) -> str:
    """The first name."""
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
    """schema.org's words for it, where they say more than the page does; else {}."""
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
    """What any kind of page may have besides."""
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
    """Of an episode or a video."""
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
