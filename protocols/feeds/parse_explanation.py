"""Explain to people why a document was parsed as it was.

What the parser reports is taken from the `ParsedFeed`. Everything else is found out
afterwards by looking at the document again, so that it costs parsing nothing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import Final

from protocols.dates import LONGEST as LONGEST_DATE
from protocols.dates import parse_date
from protocols.feeds.text_encoding import (
    BYTE_ORDER_MARKS,
    decode_as_claimed,
    known_codec,
    mend_utf8,
    to_utf8,
)
from protocols.identity import LONGEST_KEY, key_of_link
from protocols.model import Entry, IdSource, ParsedFeed
from protocols.urls import LONGEST as LONGEST_URL

MOST_DROPPED = 50
"""The number of values that are listed; further ones are not."""

_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.I)
_DECLARED: Final = re.compile(
    rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_UNCLAIMED: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "cp1252")
_SAMPLE: Final = 1_024
_DATES: Final = re.compile(
    r"<(?:(?:dc|dcterms|atom|a10):)?(?:pubDate|published|updated|lastBuildDate|date"
    r"|issued|modified|created)(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?(?P<xml>[^<>\]]+)"
    r"|\"date_(?:published|modified)\"\s*:\s*\"(?P<json>[^\"\\]+)\"",
    re.IGNORECASE,
)
_LONG_URLS: Final = re.compile(
    rf"\s(?:href|url|src)\s*=\s*[\"'](?P<attribute>[^\"'<>]{{{LONGEST_URL + 1},}})"
    rf"|<link>(?P<text>[^<>]{{{LONGEST_URL + 1},}})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingExplanation:
    """The encoding a document was read in.

    ``source`` says where the name comes from. ``claims`` are all declarations, as
    written.
    """

    name: str
    source: str
    claims: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRule:
    """What identifies an entry, and why a preferred way to identify it was not used."""

    title: str
    id: str
    key: str
    rule: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseExplanation:
    """``problems`` are the parser's own: repairs and entries that were left out."""

    format: str
    path: str
    encoding: EncodingExplanation
    problems: tuple[str, ...]
    dropped: tuple[str, ...]  # dates and URLs that are in no entry
    left_out: int  # the number of entries
    entries: tuple[EntryRule, ...]


def explain(body: bytes, content_type: str, parsed: ParsedFeed) -> ParseExplanation:
    """Explain how a document was read as that feed."""
    return ParseExplanation(
        format=parsed.format,
        path=parsed.path,
        encoding=explain_encoding(body, content_type),
        problems=parsed.problems,
        dropped=_dropped(mend_utf8(to_utf8(body, content_type).body)[0]),
        left_out=parsed.dropped,
        entries=tuple(_rule(entry, parsed) for entry in parsed.entries),
    )


def explain_encoding(body: bytes, content_type: str) -> EncodingExplanation:
    """The encoding a document was read in: the first declared one that gives the
    result.

    It is found by decoding again, so it is right whatever rules the reader follows.
    """
    found = decode_as_claimed(body, content_type)
    problem = _find_problem(body, content_type)
    said = [*_said(body, content_type)]
    claims = tuple(f"{source}: {label}" for source, label, _ in said)
    for source, _, codec in said:
        if codec and _decoded(body, codec) == found.body:
            return EncodingExplanation(
                name=codec, source=source, claims=claims, problem=problem
            )
    name = "utf-8"
    if found.body != body:
        fitting = (each for each in _UNCLAIMED if _decoded(body, each) == found.body)
        name = next(fitting, "unknown")
    default = "its bytes, contrary to the declarations" if said else "its bytes"
    return EncodingExplanation(
        name=name, source=default, claims=claims, problem=problem
    )


def _find_problem(body: bytes, content_type: str) -> str:
    """What went wrong when decoding; "" if nothing. Binary data has no encoding."""
    document = to_utf8(body, content_type)
    try:
        document.body.decode()
    except UnicodeDecodeError:
        if b"\0" in document.body:
            return "it is not text in any encoding"
        codec = mend_utf8(document.body)[1]
        return f"bytes that are not UTF-8 were read as {codec}"
    return document.problem


def _said(body: bytes, content_type: str) -> Iterator[tuple[str, str, str]]:
    """Each declaration of an encoding: its source, the label, and the codec of that
    name.
    """
    for mark, codec in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            yield "byte order mark", codec, codec
            break
    if charset := _CHARSET.search(content_type):
        yield "HTTP header", charset[1], known_codec(charset[1])
    if declared := _DECLARED.search(body[:_SAMPLE]):
        label = declared[1].decode()
        yield "declaration", label, known_codec(label)


def _decoded(body: bytes, codec: str) -> bytes:
    if codec == "utf-8":
        return body.removeprefix(codecs.BOM_UTF8)
    text = body.decode(codec, "replace").removeprefix("\ufeff")
    return text.encode("utf-8", "surrogatepass")


def _dropped(text: str) -> tuple[str, ...]:
    found = [
        *islice(_unreadable_dates(text), MOST_DROPPED),
        *islice(_long_urls(text), MOST_DROPPED),
    ]
    return tuple(why for _, why in sorted(found)[:MOST_DROPPED])


def _unreadable_dates(text: str) -> Iterator[tuple[int, str]]:
    for match in _DATES.finditer(text):
        written = unescape(match["xml"] or match["json"]).strip()
        if written and parse_date(written) is None:
            line = _line(text, match.start())
            why = "an overlong" if len(written) > LONGEST_DATE else "an invalid"
            yield line, f"line {line}: {why} date: {written[:80]}"


def _long_urls(text: str) -> Iterator[tuple[int, str]]:
    for match in _LONG_URLS.finditer(text):
        line, url = _line(text, match.start()), match["attribute"] or match["text"]
        yield (
            line,
            f"line {line}: a URL of more than {LONGEST_URL} characters: {url[:80]}",
        )


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _rule(entry: Entry, parsed: ParsedFeed) -> EntryRule:
    links = [link.href for link in entry.links if link.rel == "alternate"]
    match entry.id_source:
        case IdSource.FEED:
            rule = "its id"
            why = (
                f"over {LONGEST_KEY} characters" if len(entry.id) > LONGEST_KEY else ""
            )
        case IdSource.LINK:
            rule, why = "its link", "it has no id of its own"
        case IdSource.ENCLOSURE:
            rule, why = "its enclosure", _why_not_link(links, parsed)
        case _:
            rule, why = (
                "a hash of title, date and content",
                _why_not_link(links, parsed),
            )
    return EntryRule(title=entry.title, id=entry.id, key=entry.key, rule=rule, why=why)


def _why_not_link(links: list[str], parsed: ParsedFeed) -> str:
    if not links:
        return "it has neither an id nor a link"
    sites = (link.href for link in parsed.feed.links if link.rel == "alternate")
    if key_of_link(links[0]) in map(key_of_link, sites):
        return "it has no id, and its link is the site's own"
    return "it has no id, and shares its link with others"
