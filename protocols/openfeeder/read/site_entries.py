"""Pages of an OpenFeeder site as entries."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from protocols.identity import content_hash, fingerprint, key_of_id
from protocols.model import Author, Entry, Link, Text
from protocols.openfeeder.read.site_answers import ContentChunk, ContentPage, ListedItem

GROUP: Final = "openfeeder"
"""The group of extensions for members that the entry model has no field for."""
_ELEMENTS: Final = {"heading": "h2", "quote": "blockquote", "code": "pre"}
_BULLETS: Final = "-*•"


def key_of(url: str) -> str:
    """A page's key, made from its absolute URL."""
    return key_of_id(url)


def entry_of(listed: ListedItem, page: ContentPage | None, language: str) -> Entry:
    """``page`` is None if the site does not give the content of the pages it lists."""
    summary = (page.summary if page else "") or listed.summary
    author = (page.author if page else "") or listed.author
    updated = (page.updated if page else None) or listed.updated
    missing = page.missing if page else 0
    return Entry(
        key=key_of(listed.url),
        id=listed.url,
        title=(page.title if page else "") or listed.title,
        summary=Text(value=summary, type="text") if summary else None,
        content=_content(page.chunks) if page and page.chunks else None,
        published=(page.published if page else None) or listed.published,
        updated=updated,
        links=(Link(href=listed.url),),
        authors=(Author(name=author),) if author else (),
        language=(page.language if page else "") or language,
        extensions={GROUP: {"missing_chunks": missing}} if missing else {},
    )


def content_of(entry: Entry, page: ContentPage | None) -> int:
    """A hash of 63 bits of an entry's content, whatever the order of its chunks.

    Some servers do not keep that order.
    """
    if page is None:
        return fingerprint(content_hash(entry)) >> 1
    chunks = sorted(page.chunks, key=lambda chunk: (chunk.text, chunk.type))
    ordered = replace(entry, content=_content(chunks) if chunks else None)
    return fingerprint(content_hash(ordered)) >> 1


def is_of(page: ContentPage, listed: ListedItem) -> bool:
    """Whether a page is the one that was requested.

    Servers drop queries and fragments, and answer with the page that has none. Hosts
    may differ, and the final slash. A page that only lacks the fragment is accepted if
    its title does not differ.
    """
    if not page.url:
        return True
    place, fragment = _place(page.url)
    wanted, wanted_fragment = _place(listed.url)
    if place != wanted:
        return False
    if not fragment and wanted_fragment:
        return page.title in ("", listed.title)
    return fragment == wanted_fragment


def _place(url: str) -> tuple[tuple[str, str], str]:
    parts = urlsplit(url)
    return (parts.path.rstrip("/"), parts.query), parts.fragment


def _content(chunks: Iterable[ContentChunk]) -> Text:
    return Text(value="\n".join(map(_markup, chunks)), type="html")


def _markup(chunk: ContentChunk) -> str:
    if chunk.type == "list":
        return f"<ul>{''.join(map(_item, chunk.text.splitlines()))}</ul>"
    text = html.escape(chunk.text, quote=False)
    if chunk.type == "code":
        text = f"<code>{text}</code>"
    element = _ELEMENTS.get(chunk.type, "p")
    return f"<{element}>{text}</{element}>"


def _item(line: str) -> str:
    text = line.strip().lstrip(_BULLETS).strip()
    return f"<li>{html.escape(text, quote=False)}</li>" if text else ""
