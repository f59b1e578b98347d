"""An entry as a page whose content is chunks (OpenFeeder 3.2), from its typed blocks.

Scripts, styles, frames, form fields and hidden elements are never read into blocks, and
pictures are not chunks, so that no tracking pixel is left. The other noise (OpenFeeder
4) is removed from the HTML: advertisements, navigation, consent dialogs, sidebars,
footers, share widgets and comments, as common programs mark them; and the lines that
these put under every post. Texts are ranked by how well they match a search.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Protocol

from protocols.enclosures import enclosed_files
from protocols.languages import language_tag
from protocols.model import Entry, Feed, Text
from protocols.openfeeder.write.content_queries import AuthorDisplay, PageType
from protocols.scp.write.blocks import Block, blocks_of_html, blocks_of_text, take_out
from protocols.scp.write.page import TITLE_LENGTH, author_name, shorten
from protocols.text import collapse
from protocols.track.words import folded_words, words_of

_TAGS: Final = frozenset({"nav", "form", "dialog", "footer", "menu"})
_ROLES: Final = frozenset(
    {
        *("navigation", "banner", "contentinfo", "complementary", "search", "dialog"),
        *("alertdialog", "menu", "menubar", "toolbar"),
    }
)
_MARKED: Final = ("div", "section", "aside", "ul", "ol", "p", "table", "figure", "ins")
"""Elements whose classes say what they are; classes of inline elements are about
looks.
"""
# Whole words of class and id, split at - and _, so that neither "shadow" nor
# "leadership" match.
_WORDS: Final = frozenset(
    {
        *("ad", "ads", "adsbygoogle", "advert", "advertisement", "advertising"),
        *("adslot", "adunit", "sponsor", "sponsored", "promo", "nav", "navbar"),
        *("navigation", "breadcrumb", "breadcrumbs", "sidebar", "newsletter"),
        *("share", "sharing", "sharedaddy", "sharethis", "addthis", "addtoany", "a2a"),
        *("social", "feedflare", "likes", "flattr", "comments", "disqus", "respond"),
        *("relatedposts", "outbrain", "taboola", "mc4wp", "popup", "modal", "gdpr"),
    }
)
_PAIRS: Final = tuple(
    frozenset(each.split())
    for each in (
        *("cookie banner", "cookie consent", "cookie notice", "cookie bar"),
        *("consent banner", "related posts", "related articles", "comment list"),
        *("comment form", "subscribe form", "subscribe box", "tracking pixel"),
    )
)
_CUT = re.compile(r"[^0-9A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_QUOTED = "blockquote"
_BOILERPLATE: Final = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        r"the post .{1,300} (?:appeared first on|first appeared on) .{1,200}",
        r"(?:share|like|tweet|pin|email|print|follow) (?:this|it|us)"
        r"(?: (?:post|article|story|on|via|with).{0,60})?\W*",
        r"(?:like|loading|share|tweet|related|advertisements?|sponsored)"
        r"(?: loading)?\W*",
        r"(?:subscribe|sign up) (?:to|for) (?:our|my|the) newsletter.{0,100}",
        r"(?:facebook|twitter|linkedin|reddit|whatsapp|pinterest|email|x)"
        r"(?:[\s,|/\u00b7\u2022]+(?:facebook|twitter|linkedin|reddit|whatsapp|pinterest"
        r"|email|x))+\W*",
    )
)
_LONGEST_BOILERPLATE: Final = 600


def prune(root: Any) -> None:
    """Remove what is excluded from the tree; the text after it stays."""
    marked = list(root.iter(*_TAGS, *_MARKED))
    take_out(each for each in marked if each is not root and _is_excluded(each))


def is_boilerplate(text: str) -> bool:
    """Whether a paragraph, list or heading is not about the page itself."""
    line = " ".join(text.split())
    if len(line) > _LONGEST_BOILERPLATE:
        return False
    return any(each.fullmatch(line) for each in _BOILERPLATE)


def _is_excluded(element: Any) -> bool:
    if element.tag in _TAGS:
        # A quotation often has its source in its footer.
        is_cited = element.tag == "footer" and _is_quoted(element)
        return not is_cited
    if (role := element.get("role")) and role.strip().lower() in _ROLES:
        return True
    marks = f"{element.get('class') or ''} {element.get('id') or ''}"
    words = {word.lower() for word in _CUT.split(marks)}
    return not _WORDS.isdisjoint(words) or any(pair <= words for pair in _PAIRS)


def _is_quoted(element: Any) -> bool:
    return next(element.iterancestors(_QUOTED), None) is not None


MOST_CHUNKS: Final = 50
"""Per page: a request cannot ask for more, and there is no second page of chunks."""
_HTML: Final = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})


class ChunkType(StrEnum):
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    CODE = "code"
    QUOTE = "quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """``id`` is made from the content: it stays the same when other chunks change."""

    id: str
    type: ChunkType
    text: str


_TYPES: Final = {
    "text": ChunkType.PARAGRAPH,
    "heading": ChunkType.HEADING,
    "list": ChunkType.LIST,
    "code": ChunkType.CODE,
    "quote": ChunkType.QUOTE,
    "table": ChunkType.PARAGRAPH,
}
_Said = tuple[ChunkType, str]


def chunks_of(text: Text | None) -> tuple[Chunk, ...]:
    """The chunks of a text; none for None. Pictures and media are left out."""
    said = [(_TYPES[each["type"]], _words(each)) for each in _blocks(text)]
    return _named(_merged([each for each in said if _is_content(each)]))


def chunks_of_words(words: str) -> tuple[Chunk, ...]:
    """One paragraph, for a page without other content; nothing if there are no
    words.
    """
    return _named([(ChunkType.PARAGRAPH, words)] if words else [])


def _blocks(text: Text | None) -> Iterable[Block]:
    if text is None:
        return []
    if text.type in _HTML:
        found = blocks_of_html(text.value, prune)
    elif text.type == "text" or text.type.lower().startswith("text/"):
        found = blocks_of_text(text.value)
    else:
        return []
    return (each for each in found if each["type"] in _TYPES)


def _words(block: Block) -> str:
    match block["type"]:
        case "list":
            items = [each for each in block["items"] if not is_boilerplate(each)]
            return "\n".join(f"- {each}" for each in items)
        case "table":
            return "\n".join(" | ".join(row) for row in block["rows"]).strip(" |\n")
        case "code":
            return str(block["code"])
        case "quote" if citation := block.get("citation"):
            return f"{block['text']}\n\u2014 {citation}"
    return str(block["text"])


def _is_content(said: _Said) -> bool:
    kind, text = said
    if kind is ChunkType.CODE:
        return True
    return bool(text.strip()) and not is_boilerplate(text)


def _merged(said: Sequence[_Said]) -> Sequence[_Said]:
    """Merge neighbours evenly until there are few enough."""
    if len(said) <= MOST_CHUNKS:
        return said
    size = -(-len(said) // MOST_CHUNKS)
    return [
        _together(said[begin : begin + size]) for begin in range(0, len(said), size)
    ]


def _together(said: Sequence[_Said]) -> _Said:
    kinds = {kind for kind, _ in said}
    kind = kinds.pop() if len(kinds) == 1 else ChunkType.PARAGRAPH
    return kind, "\n\n".join(text for _, text in said)


def _named(said: Iterable[_Said]) -> tuple[Chunk, ...]:
    """Give chunks their ids; repeated chunks are numbered."""
    turns: Counter[str] = Counter()
    chunks = []
    for kind, text in said:
        digest = blake2b(f"{kind}\n{text}".encode(), digest_size=8).hexdigest()
        turns[digest] += 1
        name = digest if turns[digest] == 1 else f"{digest}-{turns[digest]}"
        chunks.append(Chunk(id=name, type=kind, text=text))
    return tuple(chunks)


SUMMARY_LENGTH = 300
"""Characters; enough for up to three sentences."""
_ENDS = re.compile(r"[.!?\u3002](?=\s|$)")
_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """A page without its chunks: an item of an index. ``author`` "": not shown."""

    url: str
    type: PageType
    title: str
    author: str
    published: datetime | None
    updated: datetime
    language: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    facts: PageFacts
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSetting:
    """What a page does not get from its entry. ``language`` is the default."""

    url: str
    updated: datetime
    feed: Feed
    language: str
    authors: AuthorDisplay = AuthorDisplay.NAME


def page_of(entry: Entry, setting: PageSetting) -> EntryPage:
    """The entry as a page; equal arguments give equal pages.

    It has at least one chunk.
    """
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
    return EntryPage(facts=facts, chunks=content or summary or chunks_of_words(title))


def page_type(entry: Entry) -> PageType:
    kinds = {each.kind for each in enclosed_files(entry)}
    for type in (PageType.AUDIO, PageType.VIDEO):
        if type in kinds:
            return type
    return PageType.POST


def _first_words(chunks: tuple[Chunk, ...]) -> str:
    """Enough words for a summary, without headings unless there is nothing else."""
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
    """The first valid language tag of entry and feed, else the default."""
    tags = map(language_tag, (entry.language, setting.feed.language))
    return next(filter(None, tags), setting.language)


# --- how well texts match a search ---------------------------------------------------

LONGEST_READ = 20_000
"""Characters of a text that are compared."""
_SATURATION = 0.6
_TITLE_WEIGHT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """``title`` counts for more than ``text``."""

    title: str = ""
    text: str = ""


class Ranker(Protocol):
    """The interface for other ways to rank."""

    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """A score from 0 to 1 for each candidate, in order; 0: it does not match at
        all.
        """
        ...


class WordRanker:
    """Ranks texts by the words of the query.

    The score depends on how many of the words a text has, how rare these are among all
    the candidates, how often they occur, and whether they are in the title.
    """

    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        wanted = list(dict.fromkeys(query_words(query)))
        counted = [_count(each, wanted) for each in candidates]
        weights = {word: _rarity(word, counted) for word in wanted}
        total = sum(weights.values())
        return [_score(each, weights, total) for each in counted]


def query_words(query: str) -> list[str]:
    return folded_words(words_of(query))


def _count(candidate: Candidate, wanted: Sequence[str]) -> dict[str, int]:
    titles = Counter(query_words(candidate.title[:LONGEST_READ]))
    texts = Counter(query_words(candidate.text[:LONGEST_READ]))
    return {word: titles[word] * _TITLE_WEIGHT + texts[word] for word in wanted}


def _rarity(word: str, counted: Sequence[dict[str, int]]) -> float:
    having = sum(1 for each in counted if each[word])
    return math.log(1 + (len(counted) + 1) / (having + 1))


def _score(counts: dict[str, int], weights: dict[str, float], total: float) -> float:
    """The sum of the words' weights; a word counts more the more often it occurs."""
    found = sum(
        weight * counts[word] / (counts[word] + _SATURATION)
        for word, weight in weights.items()
    )
    return round(min(found / total, 1.0), 4) if total else 0.0
