"""An entry as a page (OpenFeeder 3.2): what is told of it, wherever it is told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from protocols.enclosures import enclosed_files
from protocols.languages import language_tag
from protocols.model import Entry, Feed
from protocols.openfeeder.serving.choices import AuthorDisplay, PageType
from protocols.openfeeder.serving.chunks import Chunk, chunks_of, chunks_of_words
from protocols.scp.page import TITLE_LENGTH, author_name, shorten
from protocols.text import collapse

SUMMARY_LENGTH = 300
"""Characters; up to three sentences fit."""
_ENDS = re.compile(r"[.!?\u3002](?=\s|$)")
_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """A page without its chunks: an item of an index. ``author`` "": none is told."""

    url: str
    type: PageType
    title: str
    author: str
    published: datetime | None
    updated: datetime
    language: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    facts: PageFacts
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSetting:
    """What a page is given from outside; ``language``: where none is named."""

    url: str
    updated: datetime
    feed: Feed
    language: str
    authors: AuthorDisplay = AuthorDisplay.NAME


def page_of(entry: Entry, setting: PageSetting) -> Page:
    """The same entry in the same setting is the same page. It has a chunk at least."""
    content = chunks_of(entry.content)
    summary = chunks_of(entry.summary)
    words = _first_words(summary) or _first_words(content)
    title = collapse(entry.title) or shorten(words, TITLE_LENGTH) or setting.url
    facts = PageFacts(
        url=setting.url,
        type=page_type(entry),
        title=title,
        author=_author(entry, setting),
        published=entry.published,
        updated=setting.updated,
        language=_language(entry, setting),
        summary=_summary(words) or title,
    )
    return Page(facts=facts, chunks=content or summary or chunks_of_words(title))


def page_type(entry: Entry) -> PageType:
    kinds = {each.kind for each in enclosed_files(entry)}
    for type in (PageType.AUDIO, PageType.VIDEO):
        if type in kinds:
            return type
    return PageType.POST


def _first_words(chunks: tuple[Chunk, ...]) -> str:
    """Enough for a summary, headings left out unless there is nothing else."""
    texts = [each.text for each in chunks if each.type != "heading"]
    joined = " ".join(texts[:10]) or " ".join(each.text for each in chunks[:10])
    return collapse(joined[: SUMMARY_LENGTH * 4])


def _summary(words: str) -> str:
    """Up to three whole sentences, or as many words as fit."""
    ends = [each.end() for each in _ENDS.finditer(words, 0, SUMMARY_LENGTH + 1)]
    fitting = [end for end in ends if end <= SUMMARY_LENGTH][:_MOST_SENTENCES]
    return words[: fitting[-1]] if fitting else shorten(words, SUMMARY_LENGTH)


def _author(entry: Entry, setting: PageSetting) -> str:
    if setting.authors is AuthorDisplay.HIDDEN:
        return ""
    return author_name(entry.authors) or author_name(setting.feed.authors)


def _language(entry: Entry, setting: PageSetting) -> str:
    """A tag of BCP 47 as it stands, if it is one."""
    tags = map(language_tag, (entry.language, setting.feed.language))
    return next(filter(None, tags), setting.language)
