"""A page of a collection as an entry.

Texts and times are the page's own. schema.org's values are used if they are more
complete, or if the page has none (SCP, "Schema.org Integration"). Content blocks become
HTML ("Content Block Types"): texts are escaped, and only http and https addresses are
kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any, Final

from protocols.feeds.constructs import make_link
from protocols.feeds.jsonvalues import shallow
from protocols.identity import key_of_id
from protocols.languages import language_tag
from protocols.model import Author, Category, Entry, Link, Text
from protocols.scp.read.collection_heads import read_moment
from protocols.scp.read.collection_reader import CollectionPage, Warnings, page_url
from protocols.text import collapse

_LANGUAGE_LENGTH: Final = 40
_PLAIN_URL: Final = re.compile("[^&<>\"']*").fullmatch
_DEFAULT_LEVEL: Final = 2

Block = dict[str, Any]


def html_of_blocks(
    blocks: list[Any], line: int, warnings: Warnings
) -> tuple[str, list[Any]]:
    """Write blocks as HTML. Also returns the audio and video blocks.

    Of these only links to pages are written, by their names; files are not part of the
    text. Blocks of unknown types are noted and skipped.
    """
    parts: list[str] = []
    media: list[Any] = []
    for number, block in enumerate(blocks):
        kind = block.get("type") if type(block) is dict else None
        write = _WRITERS.get(kind) if type(kind) is str else None
        if write is None:
            warnings.add(line, f"/content/{number}/type", "unknown type; ignored")
            continue
        if write is _media:
            media.append(block)
        if written := write(block):
            parts.append(written)
        elif written is None:
            warnings.add(line, f"/content/{number}", "empty; ignored")
    return "\n".join(parts), media


def media_urls(block: Block) -> list[tuple[str, str]]:
    """The URLs of an audio or video block, with their media types."""
    listed = block.get("url")
    if type(listed) is str:
        url = page_url(listed)
        return [(url, "")] if url else []
    found = []
    for each in listed if type(listed) is list else ():
        if type(each) is dict and type(each.get("href")) is str:
            type_ = each.get("mediaType")
            if url := page_url(each["href"]):
                found.append((url, type_.strip() if type(type_) is str else ""))
    return found


def _shown(text: str) -> str:
    """Like `html.escape` without quotes, but faster: most texts need no escaping."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text


def _attribute(url: str) -> str:
    is_plain = _PLAIN_URL(url) is not None
    return url if is_plain else escape(url)


def _text(block: Block) -> str | None:
    text = block.get("text")
    if type(text) is not str:
        return None
    return _paragraphs(text) if "\n" in text else f"<p>{_shown(text)}</p>"


def _paragraphs(text: str) -> str:
    written = _shown(text)
    if "\n" not in written:
        return f"<p>{written}</p>"
    paragraphs = (each.strip("\n") for each in written.split("\n\n"))
    return "\n".join(f"<p>{p.replace(chr(10), '<br>')}</p>" for p in paragraphs if p)


def _heading(block: Block) -> str | None:
    """SCP, "Non-Fatal Errors": "clamp to nearest valid value"."""
    text, level = block.get("text"), block.get("level")
    if type(text) is not str:
        return None
    if type(level) is not int:
        level = _DEFAULT_LEVEL
    level = min(max(level, 1), 6)
    return f"<h{level}>{_shown(text)}</h{level}>"


def _link(block: Block) -> str | None:
    text, url = block.get("text"), block.get("url")
    if type(text) is not str or type(url) is not str:
        return None
    if not (address := page_url(url)):
        return _paragraphs(text)
    relation = ""
    if type(rel := block.get("rel")) is list:
        words = [each for each in rel if type(each) is str]
        relation = f' rel="{escape(" ".join(words))}"' if words else ""
    shown = _shown(text)
    return f'<p><a href="{_attribute(address)}"{relation}>{shown}</a></p>'


def _image(block: Block) -> str | None:
    url, alt = block.get("url"), block.get("alt")
    address = page_url(url) if type(url) is str else ""
    if not address:
        return None
    shown = escape(alt) if type(alt) is str else ""
    return f'<p><img src="{escape(address)}" alt="{shown}"></p>'


def _list(block: Block) -> str | None:
    items = block.get("items")
    if type(items) is not list:
        return None
    tag = "ol" if block.get("ordered") is True else "ul"
    written = "".join(f"<li>{_cell(each)}</li>" for each in items)
    return f"<{tag}>{written}</{tag}>" if written else None


def _code(block: Block) -> str | None:
    code, language = block.get("code"), block.get("language")
    if type(code) is not str:
        return None
    named = ""
    if type(language) is str and language and " " not in language:
        named = f' class="language-{escape(language[:_LANGUAGE_LENGTH])}"'
    return f"<pre><code{named}>{_shown(code)}</code></pre>"


def _table(block: Block) -> str | None:
    rows = block.get("rows")
    if type(rows) is not list:
        return None
    written = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>"
        for row in rows
        if type(row) is list
    )
    return f"<table>{written}</table>" if written else None


def _cell(value: object) -> str:
    if type(value) is not str:
        return ""
    written = _shown(value)
    return written.replace("\n", "<br>") if "\n" in written else written


def _quote(block: Block) -> str | None:
    text, citation = block.get("text"), block.get("citation")
    if type(text) is not str:
        return None
    cite, words = "", ""
    if type(citation) is str and citation:
        address = page_url(citation)
        cite = f' cite="{escape(address)}"' if address else ""
        words = "" if address else f"<p><cite>{escape(citation)}</cite></p>"
    return f"<blockquote{cite}>{_paragraphs(text)}{words}</blockquote>"


def _media(block: Block) -> str | None:
    name, urls = block.get("name"), media_urls(block)
    if not urls:
        return None
    pages = [url for url, type_ in urls if type_.lower() == "text/html"]
    return "".join(
        f'<p><a href="{escape(url)}">'
        f"{escape(name if type(name) is str else url, quote=False)}</a></p>"
        for url in pages
    )


_WRITERS: Final[dict[str, Callable[[Block], str | None]]] = {
    "text": _text,
    "heading": _heading,
    "link": _link,
    "image": _image,
    "list": _list,
    "code": _code,
    "table": _table,
    "quote": _quote,
    "video": _media,
    "audio": _media,
}


GROUP: Final = "scp"
"""The group of extensions for ``schema`` and ``media``, as the page has them."""
MOST_LINKS: Final = 50
"""Links of one relation, such as enclosures; more are left out."""
_MOST_AUTHORS: Final = 50
_MOST_KEYWORDS: Final = 100


def entry_of_page(page: CollectionPage, warnings: Warnings) -> Entry:
    """Turn a page into an entry. Never fails: an invalid optional member is left out
    and noted.
    """
    found, url = page.members, page.url
    schema = found.get("schema")
    if type(schema) is not dict:
        schema = {}
    html, media = html_of_blocks(found["content"], page.line, warnings)
    description = collapse(found["description"])
    links = _Links(url)
    for block in media:
        _add_media(links, block)
    _add_related(links, found, schema)
    extension: dict[str, Any] = {}
    if schema:
        extension["schema"] = shallow(schema)
    if media:
        extension["media"] = shallow(media)
    return Entry(
        key=key_of_id(url),
        id=url,
        title=collapse(found["title"]) or _word(schema, "headline", "name"),
        summary=Text(value=description, type="text") if description else None,
        content=Text(value=html) if html else None,
        published=read_moment(found.get("published"))
        or read_moment(schema.get("datePublished")),
        updated=page.modified,
        links=tuple(links.found),
        authors=_authors(found, schema),
        categories=_categories(schema) if schema else (),
        language=_language(found["language"], schema),
        extensions={GROUP: extension} if extension else {},
    )


class _Links:
    """The links of an entry, the page itself first, each once."""

    __slots__ = ("_counts", "_hrefs", "_known", "found")

    def __init__(self, page: str) -> None:
        self.found = [Link(href=page)]
        self._known = {("alternate", page)}
        self._hrefs = {page}
        self._counts: dict[str, int] = {}

    def add(self, rel: str, address: object) -> None:
        url = page_url(address) if type(address) is str else ""
        if url and (rel, url) not in self._known:
            self._append(url, rel)

    def add_file(self, url: str, type_: str) -> None:
        """Add a link to a file, unless the file is linked already."""
        if url not in self._hrefs:
            self._append(url, "enclosure", type_)

    def _append(self, url: str, rel: str, type_: str = "") -> None:
        count = self._counts.get(rel, 0)
        if count >= MOST_LINKS:
            return
        self._counts[rel] = count + 1
        self._known.add((rel, url))
        self._hrefs.add(url)
        self.found.append(make_link(url, rel, type_))


def _add_media(links: _Links, block: dict[str, Any]) -> None:
    """Add the files of a block as enclosures; pages are linked in the text."""
    for url, type_ in media_urls(block):
        if type_.lower() != "text/html":
            links.add_file(url, type_)
    icon = block.get("icon")
    if type(icon) is dict:
        links.add("image", icon.get("url"))


def _add_related(links: _Links, found: dict[str, Any], schema: dict[str, Any]) -> None:
    canonical = found.get("canonical")
    if canonical is not None and canonical != found["url"]:
        links.add("canonical", canonical)
    if schema:
        links.add("image", _first(schema.get("thumbnailUrl")))
        links.add("image", _first(schema.get("image")))


def _first(value: Any) -> Any:
    """The URL of a picture, in any of schema.org's forms."""
    if type(value) is list:
        value = value[0] if value else None
    return value.get("url") if type(value) is dict else value


def _authors(found: dict[str, Any], schema: dict[str, Any]) -> tuple[Author, ...]:
    """The authors. schema.org may name several, and give their URLs."""
    listed = schema.get("author")
    people = listed if type(listed) is list else [listed]
    authors = tuple(
        Author(name=name, uri=_uri(each))
        for each in people[:_MOST_AUTHORS]
        if (name := _name(each))
    )
    if authors:
        return authors
    author = found.get("author")
    name = collapse(author) if type(author) is str else ""
    return (Author(name=name),) if name else ()


def _name(person: Any) -> str:
    name = person.get("name") if type(person) is dict else person
    return collapse(name) if type(name) is str else ""


def _uri(person: Any) -> str:
    url = person.get("url") if type(person) is dict else None
    return page_url(url) if type(url) is str else ""


def _categories(schema: dict[str, Any]) -> tuple[Category, ...]:
    """The categories. Keywords are a list, or a text separated by commas."""
    words: dict[str, None] = {}
    for name in ("keywords", "articleSection"):
        listed = schema.get(name)
        if type(listed) is str:
            listed = listed.split(",") if name == "keywords" else [listed]
        for each in listed if type(listed) is list else ():
            if type(each) is str and (word := collapse(each)):
                words[word] = None
    return tuple(Category(term=each) for each in list(words)[:_MOST_KEYWORDS])


def _language(tag: str, schema: dict[str, Any]) -> str:
    """The language. schema.org's tag is used if it is more exact for the same language.

    Tags of the protocol have only a language and a country.
    """
    fuller = schema.get("inLanguage")
    known = language_tag(tag)
    whole = language_tag(fuller) if type(fuller) is str else ""
    return whole if whole and _primary(whole) == _primary(known or whole) else known


def _primary(tag: str) -> str:
    return tag.partition("-")[0]


def _word(schema: dict[str, Any], *names: str) -> str:
    for name in names:
        value = schema.get(name)
        if type(value) is str and (text := collapse(value)):
            return text
    return ""
