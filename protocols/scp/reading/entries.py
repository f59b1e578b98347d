"""A page of a collection as an entry.

Texts and times are the page's own. schema.org's words are taken where they say more,
or where the page says nothing (SCP, "Schema.org Integration").
"""

from __future__ import annotations

from typing import Any, Final

from protocols.feeds.constructs import make_link
from protocols.feeds.jsonvalues import shallow
from protocols.identity import key_of_id
from protocols.languages import language_tag
from protocols.model import Author, Category, Entry, Link, Text
from protocols.scp.reading.collections import SitePage, Warnings, page_url
from protocols.scp.reading.markup import html_of_blocks, media_urls
from protocols.scp.reading.moments import read_moment
from protocols.text import collapse

GROUP: Final = "scp"
"""Of extensions: ``schema`` and ``media`` as the page has them."""
MOST_LINKS: Final = 50
"""Of one kind, such as enclosures; more are left out."""
_MOST_AUTHORS: Final = 50
_MOST_KEYWORDS: Final = 100


def entry_of_page(page: SitePage, warnings: Warnings) -> Entry:
    """Never fails: what is wrong with an optional member is left out and noted."""
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
    """Of an entry, the page itself first, each once."""

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
        """None that is linked already, however."""
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
    """Files are enclosures; pages stand in the text."""
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
    """The address of a picture, whichever of schema.org's forms it has."""
    if type(value) is list:
        value = value[0] if value else None
    return value.get("url") if type(value) is dict else value


def _authors(found: dict[str, Any], schema: dict[str, Any]) -> tuple[Author, ...]:
    """schema.org may name several, and where each is at home."""
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
    """Keywords are a list, or separated by commas."""
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
    """What is said more exactly in schema.org's words is taken from there: readers
    of the protocol know but a language and a country."""
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
