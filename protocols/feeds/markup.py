"""Write out the markup inside an element."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Final

from lxml import etree

from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.namespaces import ATOM, ATOM_03, NAMESPACES, XHTML

# HTML elements that need no end tag. Every other element gets one, because HTML parsers
# read "<iframe/>" as a start tag.
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)


_UNPREFIXED: Final = (
    XHTML,
    ATOM,
    ATOM_03,
    *(f"{{{each}}}" for each in NAMESPACES["rss"] if each),
)
"""Namespaces whose elements are taken as HTML's where HTML is expected."""
_DEFAULTS: Final = frozenset(each[1:-1] for each in _UNPREFIXED) | {None}
_FOREIGN_TAG: Final = re.compile(r"<[\w.-]++:")
_FOREIGN: Final = re.compile(r"\s(?!xml:)[\w.-]+:[\w.-]+=")
_BETWEEN: Final = re.compile(r":[\w.-]++=")  # part of `_FOREIGN`, found faster
_IS_MARKUP: Final = re.compile(
    r"</[a-z][a-z0-9-]*\s*>|<(?:br|hr|img|wbr)(?:\s[^<>]*)?/?>", re.IGNORECASE
).search
_OF_ELEMENTS: Final = re.compile(r"></(?:br|hr|img|wbr)>").search
_TAG: Final = re.compile(r"<(?P<end>/?)[a-zA-Z][^<>]*>")
_NAME: Final = re.compile(rf"(?!(?:{'|'.join(sorted(_VOID))})(?:\s|\Z))[^\s<>/]++")
"""The name of an empty element that has an end tag in HTML; searched up to its "/>"."""


def xhtml_inside(element: Element) -> str:
    """The content of an XHTML construct without its ``div``; may change the tree.

    "The XHTML div element itself MUST NOT be considered part of the content" (RFC 4287
    §3.1.1.3).
    """
    children = [*element]
    is_wrapped = len(children) == 1 and local_name(children[0].tag) == "div"
    return markup_inside(children[0] if is_wrapped else element)


def markup_inside(element: Element) -> str:
    """Everything between the start and the end tag; may change the tree.

    Only namespaces that the markup needs are declared in it.
    """
    plain = _plain_markup(element)
    return _mixed_markup(element) if plain is None else plain


def html_inside(element: Element) -> str:
    """Like `markup_inside`, for HTML of which only a part was escaped.

    Text beside elements counts as markup if it closes a tag, or has a tag that needs no
    closing; other text stays text.
    """
    texts = [element.text, *(child.tail for child in element)]
    if not any(text and "<" in text and _IS_MARKUP(text) for text in texts):
        return markup_inside(element)
    parts = [element.text or ""]
    for child in [*element]:
        tail, child.tail = child.tail or "", None
        fragment = etree.Element("fragment")
        fragment.append(child)
        parts += markup_inside(fragment), tail
    return "".join(parts).strip()


def with_markup_unescaped(html: str) -> str:
    """Like `html_inside`, for HTML as feedparser returns it.

    End tags of empty elements show that it had elements. Text inside elements stays
    text.
    """
    if not _OF_ELEMENTS(html):
        return html
    parts: list[str] = []
    depth = copied = 0
    for tag in _TAG.finditer(html):
        text = html[copied : tag.start()]
        parts += text if depth else _unescaped(text), tag[0]
        depth = max(0, depth - 1) if tag["end"] else depth + 1
        copied = tag.end()
    return "".join((*parts, _unescaped(html[copied:])))


def _unescaped(text: str) -> str:
    plain = unescape(text)
    return plain if _IS_MARKUP(plain) else text


def _plain_markup(element: Element) -> str | None:
    """Like `markup_inside`, in a third of the time; None if a namespace must be
    declared.
    """
    if _default_namespace(element) not in _DEFAULTS:
        return None
    written: str = etree.tostring(element, encoding="unicode", with_tail=False)
    inside = written[written.index(">") + 1 : written.rfind("</")]
    if _needs_namespace(inside):
        return None
    return (_with_end_tags(inside) if "/>" in inside else inside).strip()


def _default_namespace(element: Element) -> str | None:
    """The namespace of elements without a prefix, inside the element; None if none."""
    if element.prefix is None and element.tag[0] == "{":
        return namespace_of(element.tag)
    return element.nsmap.get(None)


def _needs_namespace(markup: str) -> bool:
    if "xmlns" in markup or _FOREIGN_TAG.search(markup):
        return True
    return bool(_BETWEEN.search(markup) and _FOREIGN.search(markup))


def _with_end_tags(written: str) -> str:
    """Give empty elements end tags. In libxml2's output brackets occur only in tags."""
    parts: list[str] = []
    copied = 0
    end = written.find("/>")
    while end >= 0:
        start = written.rfind("<", copied, end)
        name = _NAME.match(written, start + 1, end)
        if name is not None:
            parts += written[copied:end], f"></{name[0]}>"
            copied = end + 2
        end = written.find("/>", end + 2)
    parts.append(written[copied:])
    return "".join(parts)


def _mixed_markup(element: Element) -> str:
    fragment = etree.Element("fragment")
    for child in [*element]:
        fragment.append(child)
    _use_html_names(fragment)
    etree.cleanup_namespaces(fragment)
    written: str = etree.tostring(fragment, encoding="unicode")
    inside = written[len("<fragment>") : -len("</fragment>")]  # "" for "<fragment/>"
    return (escape(element.text or "", quote=False) + inside).strip()


def _use_html_names(fragment: Element) -> None:
    for element in fragment.iter():
        if element.tag.startswith(_UNPREFIXED):
            element.tag = local_name(element.tag)
        is_html = not element.tag.startswith("{")
        is_empty = element.text is None and not len(element)
        if is_html and is_empty and element.tag not in _VOID:
            element.text = ""
