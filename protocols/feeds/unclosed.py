"""What was begun in an entry and never ended, ended where it must have been.

A title without its end tag swallows all that follows it in its entry; a CDATA section
or comment without an end, all that follows it in the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OPAQUE: Final = re.compile(r"<!\[CDATA\[|<!--")
_END_OF: Final = {"<![CDATA[": "]]>", "<!--": "-->"}
_AROUND: Final = re.compile(r"<([A-Za-z_][\w:.-]{0,40})(?:\s[^<>]*)?>\s*\Z")
_LONGEST_TAG: Final = 500
_ALMOST_AN_END: Final = re.compile(r"\]{1,2}>?\s{0,4}\Z")
_MOST_ENDED: Final = 20
_ENTRY_TAG: Final = re.compile(r"</?(?:item|entry)[\s>]|</(?:channel|rss|feed)\s*>")

_TOKEN: Final = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
    r"|<(?P<end>/?)(?P<name>(?:[A-Za-z][\w-]+:)?[A-Za-z][\w-]*)(?:\s[^<>]*?)?(?P<empty>/?)>",
    re.DOTALL,
)
_LAST_END: Final = re.compile(r"</([\w:.-]{1,40})\s*>\s{0,40}\Z")
_CONTAINERS: Final = frozenset({"channel", "entry", "feed", "image", "item", "rss"})
_TEXTS: Final = frozenset(
    [
        *("title", "link", "guid", "pubDate", "description", "category", "comments"),
        *("enclosure", "id", "updated", "published", "summary", "content"),
        *("content:encoded", "dc:creator", "dc:date", "dc:subject", "dc:title"),
    ]
)
_NAMES: Final = _CONTAINERS | _TEXTS | {"author", "url"}


def end_opaque(text: str) -> str:
    """End a CDATA section or comment that has none, if what is around it has one."""
    for _ in range(_MOST_ENDED):
        opening = _first_without_end(text)
        mended = _ended(text, opening) if opening else text
        if mended is text:
            break
        text = mended
    return text


def _first_without_end(text: str) -> re.Match[str] | None:
    at = 0
    while opening := _OPAQUE.search(text, at):
        at = text.find(_END_OF[opening[0]], opening.end())
        if at < 0:
            return opening
    return None


def _ended(text: str, opening: re.Match[str]) -> str:
    """A section ends with its element, and a comment is none but for its bracket."""
    start, inside = opening.span()
    if opening[0] == "<!--":
        tag_end = text.find(">", inside)
        entry = _ENTRY_TAG.search(text, inside)
        if entry is None:
            return text
        end = tag_end + 1 if 0 <= tag_end < entry.start() else entry.start()
        return text[:start] + text[end:]
    around = _AROUND.search(text, max(0, start - _LONGEST_TAG), start)
    end = text.find(f"</{around[1]}>", inside) if around else -1
    if end < 0:
        return text
    last = _ALMOST_AN_END.search(text, max(inside, end - 8), end)
    closed = last.start() if last else end
    return f"{text[:closed]}]]>{text[end:]}"


def close_texts(text: str) -> str:
    """Put the end tags that are missing before the next part of the entry."""
    tags = [tag for tag in _TOKEN.finditer(text) if tag["name"] in _NAMES]
    parts: list[str] = []
    copied = 0
    for beginning, end in _missing_ends(tags):
        start = _wrong_end(text, beginning.end(), end)
        parts += text[copied:start], f"</{beginning['name']}>"
        copied = end
    parts.append(text[copied:])
    return "".join(parts)


def _missing_ends(tags: list[re.Match[str]]) -> Iterator[tuple[re.Match[str], int]]:
    """Start tags without an end tag, and where the next part begins."""
    number = 0
    while number < len(tags):
        tag, number = tags[number], number + 1
        if tag["end"] or tag["empty"] or tag["name"] not in _TEXTS:
            continue
        end = _own_end(tags, number, tag["name"])
        if end is not None:
            number = end + 1
        elif number < len(tags):
            yield tag, tags[number].start()


def _wrong_end(text: str, start: int, end: int) -> int:
    """Where a misspelt end tag begins, which is all that the end tag's place has."""
    found = _LAST_END.search(text, max(start, end - _LONGEST_TAG), end)
    is_wrong = found is not None and f"<{found[1]}" not in text[start:end]
    return found.start() if found and is_wrong else end


def _own_end(tags: list[re.Match[str]], first: int, name: str) -> int | None:
    """The number of its end tag, if there is one in the same entry."""
    for number in range(first, len(tags)):
        tag = tags[number]
        if tag["name"] == name:
            return number if tag["end"] else None
        if tag["name"] in _CONTAINERS:
            return None
    return None
