"""The constructs that Atom defines and everybody borrows: texts, persons, links."""

from __future__ import annotations

import binascii
from base64 import b64decode

from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.markup import markup_inside, xhtml_inside
from protocols.feeds.names import ATOM_03, XML, qualified
from protocols.feeds.scope import Scope
from protocols.model import Author, Category, Link, Text
from protocols.text import collapse, text_of_html, whole_number

_TYPES = {
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
_FILE_TYPES = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webp": "image/webp",
}
_PICTURES = frozenset(qualified("gd", {"image": True}))
_RELATIONS_TO_FILES = frozenset(
    {"banner", "enclosure", "image", "picture", "thumbnail"}
)


_LINK_ATTRIBUTES = frozenset(
    {"href", "rel", "type", "title", "length", f"{XML}base", f"{XML}lang"}
)
_NOBODY = Author()
_PERSON_PARTS = frozenset(
    {"email", "id", "link", "name", "object-type", "title", "uri", "url"}
)


def make_link(
    href: str, rel: str, type: str = "", title: str = "", length: str | None = None
) -> Link:
    """A link whose type, when none is given, is a page's, or a file's by its name."""
    if not type:
        type = _file_type(href) if rel in _RELATIONS_TO_FILES else "text/html"
    return Link(
        href=href,
        rel=rel,
        type=type,
        title=title,
        length=(whole_number(length) or None) if length else None,
    )


def _file_type(url: str) -> str:
    path = url.partition("?")[0].partition("#")[0]
    return _FILE_TYPES.get(path.rpartition(".")[2].lower(), "")


def read_link(element: Element, scope: Scope) -> Link | None:
    """An ``atom:link``; ``None`` without an address (RFC 4287 §4.2.7)."""
    href = scope.within(element).resolve(element.get("href"))
    if not href:
        return None
    rel = (element.get("rel") or "").strip() or "alternate"
    if ":" in rel:
        for prefix in _IANA_RELATIONS:
            # "The value of "rel" MUST be a name or an IRI": both name the relation.
            rel = rel.removeprefix(prefix)
    return make_link(
        href,
        rel,
        (element.get("type") or "").strip(),
        collapse(element.get("title") or ""),
        element.get("length"),
    )


def has_more_than_link(element: Element) -> bool:
    """Whether an ``atom:link`` says what `Link` has no place for."""
    return not _LINK_ATTRIBUTES.issuperset(element.keys())


def has_more_than_person(element: Element) -> bool:
    """Whether a person has parts that `Author` has no place for."""
    for child in element:
        if local_name(child.tag) not in _PERSON_PARTS and child.tag not in _PICTURES:
            return True
    return False


def read_category(element: Element) -> Category:
    """An ``atom:category``; some write the term as text, as RSS does."""
    return Category(
        term=collapse(element.get("term") or text_of(element)),
        scheme=(element.get("scheme") or "").strip(),
        label=collapse(element.get("label") or ""),
    )


def read_person(element: Element, scope: Scope) -> Author | None:
    """A person construct, with the parts that Superfeedr's schema adds to it."""
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
        elif child.tag in _PICTURES:
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
    return author if author.name or author != _NOBODY else None


def read_text(element: Element) -> Text | None:
    """A text construct or content of Atom 1.0 or 0.3; ``None`` when it is empty."""
    declared = (element.get("type") or "").strip().lower()
    kind = _TYPES.get(declared, declared)
    if element.tag.startswith(ATOM_03):
        mode = (element.get("mode") or "").strip().lower()
        if mode == "base64":
            return _decoded(text_of(element), kind)
    if kind == "xhtml" and len(element):
        return _text(xhtml_inside(element), "xhtml")
    if len(element):
        # Markup where text was announced; other XML keeps the type it was given.
        return _text(markup_inside(element), kind if "/" in kind else "html")
    if kind == "xhtml":
        kind = "html"  # nothing but text, escaped where it should not be
    return _text((element.text or "").strip(), kind)


def read_html(element: Element) -> Text | None:
    """HTML as RSS has it: escaped, or as elements against the rules."""
    if len(element):
        return _text(markup_inside(element), "html")
    return _text((element.text or "").strip(), "html")


def read_plain_text(element: Element) -> str:
    """A text construct as one line of text, for titles and rights."""
    text = read_text(element)
    if text is None:
        return ""
    return collapse(text.value) if text.type == "text" else text_of_html(text.value)


def _decoded(encoded: str, kind: str) -> Text | None:
    """Atom 0.3 ``mode="base64"``; what does not decode is kept as it is."""
    try:
        decoded = b64decode("".join(encoded.split()), validate=True)
        return _text(decoded.decode(), kind)
    except (binascii.Error, ValueError):
        return _text(encoded, "text")


def _text(value: str, type: str) -> Text | None:
    return Text(value=value, type=type) if value else None
