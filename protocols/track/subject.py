"""The subject of track queries: an entry of a feed, prepared for matching many
queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise, takewhile
from typing import Final

from protocols.model import Entry, Feed
from protocols.track.words import (
    MOST_CHARACTERS,
    MOST_MARKUP,
    folded_words,
    spoken_text,
    words_of,
)

MOST_TEXT: Final = 64 * 1024
"""Bytes of an entry's folded text that are searched; the rest is not."""
MOST_LINKS: Final = 1_000
"""Links of one text that are looked at."""
_HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.I)
_ADDRESS = re.compile(r"https?://(?:[^/?#@]*@)?([^/?#:]+)(?::\d*)?([^?#]*)", re.I)
_BREAK = " \n "
"""Separates two fields; no phrase matches across it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An entry as queries see it.

    ``text`` and ``exact_text`` are words separated by single blanks, with one before
    the first and one after the last. ``hosts`` are the publisher's and their parent
    domains; ``links`` are the pages (``host/path``) and hosts that the entry links to.
    ``keys`` are all index keys that a query may require.
    """

    words: frozenset[str]
    exact_words: frozenset[str]
    text: str
    exact_text: str
    hosts: frozenset[str]
    links: frozenset[str]
    language: str  # ISO 639-1; "" when it is not known
    popularity: float
    porn_rank: float
    bozo_rank: float
    keys: frozenset[str]


def subject_of(
    entry: Entry,
    feed: Feed,
    *,
    feed_url: str,
    popularity: float = 0.0,
    porn_rank: float = 0.0,
    bozo_rank: float = 0.0,
) -> Subject:
    """Prepare an entry. Title, categories, summary and content are searched, up to
    `MOST_TEXT`; ranks are the feed's.
    """
    exact, plain = _searched_words(entry)
    words = frozenset(chain.from_iterable(plain))
    feed_hosts = frozenset(_hosts([feed_url, *_alternates(feed)]))
    own_pages = _alternates(entry)
    if entry.source:
        own_pages += _alternates(entry.source)
    hosts = feed_hosts.union(_hosts(own_pages))
    links = frozenset(_linked(entry, feed_hosts))
    language = primary_language(entry.language or feed.language)
    return Subject(
        words=words,
        exact_words=frozenset(chain.from_iterable(exact)),
        text=_joined(plain),
        exact_text=_joined(exact),
        hosts=hosts,
        links=links,
        language=language,
        popularity=popularity,
        porn_rank=porn_rank,
        bozo_rank=bozo_rank,
        keys=_keys(words, plain, hosts, links, language),
    )


def primary_language(tag: str) -> str:
    """``en`` for ``en-US``; "" if it is not a language of two letters."""
    primary = tag.strip().replace("_", "-").partition("-")[0].lower()
    return primary if len(primary) == 2 and primary.isalpha() else ""


def address_of(url: str) -> tuple[str, str]:
    """Host and path of a web URL, in the form in which links are compared.

    The scheme, a user, the port, ``www.``, a last slash, the query and the fragment
    make no difference. ("", "") for other URLs.
    """
    match = _ADDRESS.match(url)
    if match is None:
        return "", ""
    host = match[1].lower().rstrip(".").removeprefix("www.")
    return host, match[2].rstrip("/")


def texts_of(entry: Entry) -> Iterator[str]:
    """The texts that are searched, without markup; of each the first
    `MOST_CHARACTERS`.
    """
    yield entry.title[:MOST_CHARACTERS]
    for category in entry.categories:
        yield (category.label or category.term)[:MOST_CHARACTERS]
    for text in (entry.summary, entry.content):
        if text:
            is_plain = text.type == "text"
            yield text.value[:MOST_CHARACTERS] if is_plain else spoken_text(text.value)


def _searched_words(entry: Entry) -> tuple[list[list[str]], list[list[str]]]:
    """The words of each text, as written and folded, up to `MOST_TEXT`."""
    exact, plain = [], []
    room = MOST_TEXT
    for text in texts_of(entry):
        words = words_of(text)
        folded = folded_words(words)
        size = len(" ".join(folded).encode("utf-8", "surrogatepass"))
        if size > room:
            count = _count_fitting(folded, room)
            words, folded = words[:count], folded[:count]
        exact.append(words)
        plain.append(folded)
        room -= size
        if room <= 0:
            break
    return exact, plain


def _count_fitting(words: list[str], room: int) -> int:
    """How many of the words fit, with a blank after each."""
    sizes = accumulate(len(each.encode("utf-8", "surrogatepass")) + 1 for each in words)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


def _joined(parts: Iterable[list[str]]) -> str:
    return f" {_BREAK.join(map(' '.join, parts))} "


def _hosts(pages: Iterable[str]) -> Iterator[str]:
    for page in pages:
        yield from _with_parents(address_of(page)[0])


def _alternates(what: Entry | Feed) -> list[str]:
    return [link.href for link in what.links if link.rel == "alternate"]


def _linked(entry: Entry, feed_hosts: frozenset[str]) -> Iterator[str]:
    """Where the entry's text and links lead.

    The entry's own page counts only if it is not on the feed's host, as in link blogs.
    """
    for link in entry.links:
        host, path = address_of(link.href)
        if link.rel != "alternate" or host not in feed_hosts:
            yield from _places(host, path)
    for host, path in _linked_in_text(entry):
        yield from _places(host, path)


def linked_pages(entry: Entry) -> Iterator[tuple[str, str]]:
    """Host and path of everything that the entry's links and text link to.

    ("", "") for a link to something other than a web page.
    """
    yield from (address_of(link.href) for link in entry.links)
    yield from _linked_in_text(entry)


def _linked_in_text(entry: Entry) -> Iterator[tuple[str, str]]:
    for text in (entry.summary, entry.content):
        if text and "href" in (markup := text.value[:MOST_MARKUP]):
            for href in islice(_HREF.finditer(markup), MOST_LINKS):
                yield address_of(next(filter(None, href.groups()), ""))


def _places(host: str, path: str) -> Iterator[str]:
    if host:
        yield f"{host}{path or '/'}"
        yield from _with_parents(host)


def _with_parents(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]


def _keys(
    words: frozenset[str],
    parts: Iterable[list[str]],
    hosts: Iterable[str],
    links: Iterable[str],
    language: str,
) -> frozenset[str]:
    keys = set(words)
    for part in parts:
        keys.update(map(" ".join, pairwise(part)))
    keys.update(map(site_key, hosts))
    keys.update(map(link_key, links))
    keys.add(language_key(language))
    keys.add(ANY_KEY)
    return frozenset(keys)


ANY_KEY = ""
"""The key that every entry has.

A word is its own key, and so are two words with a blank between them; the other keys
contain characters that no word has.
"""


def site_key(host: str) -> str:
    return f"site:{host}"


def link_key(place: str) -> str:
    return f"link:{place}"


def language_key(language: str) -> str:
    return f"language:{language}"
