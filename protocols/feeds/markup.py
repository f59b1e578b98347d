"""Markup inside an element, written out again."""

from __future__ import annotations

from html import escape

from lxml import etree

from protocols.feeds.element import Element, local_name
from protocols.feeds.names import ATOM, ATOM_03, XHTML

# HTML elements that need no end tag; every other one gets it, since "<iframe/>" is a
# start tag to those who read the result as HTML.
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


_UNPREFIXED = (XHTML, ATOM, ATOM_03)


def xhtml_inside(element: Element) -> str:
    """The content of an XHTML construct without its ``div``; takes it out of the tree.

    "The XHTML div element itself MUST NOT be considered part of the content"
    (RFC 4287 §3.1.1.3).
    """
    children = [*element]
    is_wrapped = len(children) == 1 and local_name(children[0].tag) == "div"
    return markup_inside(children[0] if is_wrapped else element)


def markup_inside(element: Element) -> str:
    """Everything between the start and the end tag; takes it out of the tree.

    A namespace that the markup needs is declared in it, no other one is.
    """
    fragment = etree.Element("fragment")
    for child in [*element]:
        fragment.append(child)
    _use_html_names(fragment)
    etree.cleanup_namespaces(fragment)
    written: str = etree.tostring(fragment, encoding="unicode")
    inside = written[len("<fragment>") : -len("</fragment>")]  # "" of "<fragment/>"
    return (escape(element.text or "", quote=False) + inside).strip()


def _use_html_names(fragment: Element) -> None:
    for element in fragment.iter():
        if element.tag.startswith(_UNPREFIXED):
            element.tag = local_name(element.tag)
        is_html = not element.tag.startswith("{")
        is_empty = element.text is None and not len(element)
        if is_html and is_empty and element.tag not in _VOID:
            element.text = ""
