"""The ``Link`` header (RFC 8288), read leniently and written exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from protocols.http.values import header_url, header_value
from protocols.urls import resolve

# A name begins where one can, nothing is tried in a second way, and a quote that is not
# closed soon is none: a header of words alone takes seconds otherwise.
_LINK = re.compile(r'<([^<>]*+)>((?:"(?:[^"\\]|\\.){0,999}+"|[^<"])*+)')
_NAME = "[A-Za-z0-9*_-]"
_PARAMETER = re.compile(
    rf"""(?<!{_NAME})({_NAME}++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]*+))"""
)
MOST_LINKS = 100
"""Of one header; the first ones count."""


@dataclass(frozen=True, slots=True)
class HeaderLink:
    """One relation of the resource to ``href``; relations are in lower case."""

    href: str
    rel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedLink:
    """A link with all its relations, in lower case, and what it says of its target."""

    href: str
    relations: tuple[str, ...]
    type: str
    title: str


def parse_link_header(header: str, base: str = "") -> tuple[HeaderLink, ...]:
    """Every relation named, in order; a link with two relations gives two.

    Lenient: hubs are lost when a semicolon is missing or quotes are. Links about
    another resource (``anchor``) say nothing here and are left out.
    """
    return tuple(
        HeaderLink(href=href, rel=rel)
        for target, parameters in _links(header)
        if (href := resolve(target, base))
        for rel in _relations(parameters)
    )


def parse_typed_links(header: str, base: str = "") -> tuple[TypedLink, ...]:
    """Every link with all that it says, in order; as lenient as `parse_link_header`."""
    found = []
    for target, parameters in _links(header):
        href, named = resolve(target, base), _named(parameters)
        if href and "anchor" not in named:
            found.append(
                TypedLink(
                    href=href,
                    relations=tuple(named.get("rel", "").lower().split()),
                    type=named.get("type", "").partition(";")[0].strip().lower(),
                    title=named.get("title", ""),
                )
            )
    return tuple(found)


def format_link_header(links: Iterable[HeaderLink]) -> str:
    """``<https://hub/>; rel="hub", <https://site/feed>; rel="self"``: one header.

    WebSub 7 asks for one combined header rather than several.
    """
    return ", ".join(
        f'<{header_url(link.href)}>; rel="{header_value(link.rel)}"' for link in links
    )


def _links(header: str) -> Iterator[tuple[str, str]]:
    for match in islice(_LINK.finditer(header), MOST_LINKS):
        yield match[1], match[2]


def _relations(parameters: str) -> Iterator[str]:
    found = _named(parameters)
    if "anchor" not in found:
        yield from found.get("rel", "").lower().split()


def _named(parameters: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, quoted, token in _PARAMETER.findall(parameters):
        # RFC 8288 3.3: "occurrences after the first MUST be ignored by parsers"
        found.setdefault(name.lower(), quoted or token)
    return found
