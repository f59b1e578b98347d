"""Parts that several formats share: texts, persons, links, and RSS's mailboxes.

The first three are Atom's; a mailbox is an e-mail address with a name.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from protocols.enclosures import type_by_name
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.long_texts import STAND_IN, StandInFound
from protocols.feeds.markup import html_inside, markup_inside, xhtml_inside
from protocols.feeds.namespaces import ATOM_03, XML, qualified
from protocols.feeds.scope import Scope
from protocols.model import Author, Link, Text
from protocols.text import collapse, text_of_html, whole_number

_ADDRESS = r"(?:mailto:)?(?P<email>[^\s()<>@]+@[^\s()<>@]+)"
_ADDRESS_ONLY = re.compile(_ADDRESS)
_ADDRESS_FIRST = re.compile(_ADDRESS + r"\s*\((?P<name>.*)\)")
_NAME_FIRST = re.compile(r"(?P<name>[^<(]*[^<(\s])\s*[<(]\s*" + _ADDRESS + r"\s*[>)]")
_LONGEST_REMEMBERED = 100
_LAYOUTS = (_ADDRESS_FIRST, _NAME_FIRST, _ADDRESS_ONLY)


def read_mailbox(text: str) -> Author:
    """Read ``jo@example.com (Jo)``, ``Jo <jo@example.com>``, or only one of the two."""
    return _read(text) if len(text) > _LONGEST_REMEMBERED else _read_again(text)


def _read(text: str) -> Author:
    written = collapse(text)
    for layout in _LAYOUTS if "@" in written else ():
        match = layout.fullmatch(written)
        if match:
            parts = match.groupdict()
            return Author(name=parts.get("name", "").strip(' "'), email=parts["email"])
    return Author(name=text_of_html(written))


_read_again = lru_cache(1024)(_read)
"""Cached: a feed has few authors, each repeated in many entries."""


_TYPES: Final[Mapping[str | None, str]] = {
    None: "text",
    "": "text",
    "text": "text",
    "html": "html",
    "xhtml": "xhtml",
    "text/plain": "text",
    "text/html": "html",
    "application/xhtml+xml": "xhtml",
}
_IANA_RELATIONS = (
    "http://www.iana.org/assignments/relation/",
    "http://www.iana.org/assignments/link-relations/",
)
_PICTURES = frozenset(qualified("gd", {"image": True}))
_RELATIONS_TO_FILES = frozenset(
    {"banner", "enclosure", "image", "picture", "thumbnail"}
)


_LINK_ATTRIBUTES = frozenset(
    {"href", "rel", "type", "title", "length", f"{XML}base", f"{XML}lang"}
)
_NOBODY = Author()
_PERSON_PARTS = frozenset({"email", "id", "name", "title", "uri", "url"})


def make_link(
    href: str, rel: str, type: str = "", title: str = "", length: str | None = None
) -> Link:
    """A link. Without a type it gets that of the file's name, or of a page."""
    if not type:
        type = type_by_name(href) if rel in _RELATIONS_TO_FILES else "text/html"
    size = (whole_number(length) or None) if length else None
    return Link(href=href, rel=rel, type=type, title=title, length=size)


def read_link(element: Element, scope: Scope) -> Link | None:
    """Read an ``atom:link``; ``None`` if it has no URL (RFC 4287 §4.2.7)."""
    return link_of(dict(element.items()), scope.within(element))


def link_of(said: Mapping[str, str], scope: Scope) -> Link | None:
    """Like `read_link`, from the element's attributes; ``scope`` is the one inside
    it.
    """
    href = scope.resolve(said.get("href"))
    if not href:
        return None
    rel = said.get("rel", "").strip() or "alternate"
    if ":" in rel:
        for prefix in _IANA_RELATIONS:
            # "The value of "rel" MUST be a name or an IRI": both forms name the same
            # relation.
            rel = rel.removeprefix(prefix)
    type, title = said.get("type", "").strip(), said.get("title", "")
    return make_link(href, rel, type, title and collapse(title), said.get("length"))


def has_more_than_link(said: Mapping[str, str]) -> bool:
    """Whether an ``atom:link`` has attributes for which `Link` has no field."""
    return not _LINK_ATTRIBUTES.issuperset(said)


def read_person(element: Element, scope: Scope) -> tuple[Author | None, bool]:
    """Read a person construct, with the elements that Superfeedr's schema adds.

    Also returns whether it has elements for which `Author` has no field.
    """
    scope = scope.within(element)
    parts: dict[str, str] = {}
    links: list[Link] = []
    object_types: list[str] = []
    for child in element:
        name = local_name(child.tag)
        if name == "link":
            link = read_link(child, scope)
            links.extend([link] if link else [])
        elif name == "object-type":
            object_types.append(text_of(child))
        elif name == "image" and child.tag in _PICTURES:
            picture = scope.within(child).resolve(child.get("src"))
            links.extend([make_link(picture, "picture")] if picture else [])
        else:
            parts.setdefault(name, collapse(text_of(child)))
    author = Author(
        name=parts.get("name", "") or ("" if parts else collapse(text_of(element))),
        uri=scope.resolve(parts.get("uri") or parts.get("url")),
        email=parts.get("email", ""),
        id=parts.get("id", ""),
        title=parts.get("title", ""),
        links=tuple(links),
        object_types=tuple(object_types),
    )
    has_more = not _PERSON_PARTS.issuperset(parts)
    return author if author.name or author != _NOBODY else None, has_more


def read_text(element: Element) -> Text | None:
    """Read a text construct or content of Atom 1.0 or 0.3; ``None`` if it is empty."""
    declared = element.get("type")
    kind = _TYPES.get(declared) or _kind(declared or "")
    if element.tag.startswith(ATOM_03):
        mode = (element.get("mode") or "").strip().lower()
        if mode == "base64":
            return _decoded(text_of(element), kind)
    if len(element):
        if kind == "xhtml":
            return _text(xhtml_inside(element), "xhtml")
        # Markup although text was declared; other XML keeps its declared type.
        if "/" in kind:
            return _text(markup_inside(element), kind)
        return _text(html_inside(element), "html")
    if kind == "xhtml":
        kind = "html"  # only text: XHTML that was escaped by mistake
    return _text((element.text or "").strip(), kind)


def whole_text(text: Text | None, scope: Scope, present: Text | None) -> Text | None:
    """Replace a stand-in by its text (`protocols.feeds.long_texts`); else return
    ``text``.

    Raises `StandInFound` if the field already has a value (``present``): the element
    would then be kept as an extension, with the stand-in in it.
    """
    if text is None or scope.texts is None or not text.value.startswith(STAND_IN):
        return text
    if present is not None:
        raise StandInFound
    return _text(scope.texts.hand_out(text.value).strip(), text.type)


def _kind(declared: str) -> str:
    written = declared.strip().lower()
    return _TYPES.get(written, written)


def read_html(element: Element) -> Text | None:
    """Read HTML as RSS has it: escaped, or as elements against the rules, or both."""
    if len(element):
        return _text(html_inside(element), "html")
    return _text((element.text or "").strip(), "html")


def read_plain_text(element: Element) -> str:
    """A text construct as one line of text, for titles and rights."""
    text = read_text(element)
    if text is None:
        return ""
    return collapse(text.value) if text.type == "text" else text_of_html(text.value)


def _decoded(encoded: str, kind: str) -> Text | None:
    """Decode Atom 0.3 ``mode="base64"``; invalid base64 is kept as plain text."""
    try:
        decoded = b64decode("".join(encoded.split()), validate=True)
        return _text(decoded.decode(), kind)
    except (binascii.Error, ValueError):
        return _text(encoded, "text")


def _text(value: str, type: str) -> Text | None:
    return Text(value=value, type=type) if value else None
