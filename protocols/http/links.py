"""The ``Link`` header (RFC 8288), read leniently and written exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from protocols.http.values import header_url, header_value
from protocols.urls import resolve

_LINK = re.compile(r'<([^<>]*)>((?:"(?:[^"\\]|\\.)*"|[^<"])*)')
_PARAMETER = re.compile(
    r"""([A-Za-z0-9*_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))"""
)


@dataclass(frozen=True, slots=True)
class HeaderLink:
    """One relation of the resource to ``href``; relations are in lower case."""

    href: str
    rel: str


def parse_link_header(header: str, base: str = "") -> tuple[HeaderLink, ...]:
    """Every relation named, in order; a link with two relations gives two.

    Lenient: hubs are lost when a semicolon is missing or quotes are. Links about
    another resource (``anchor``) say nothing here and are left out.
    """
    return tuple(
        HeaderLink(href=href, rel=rel)
        for target, parameters in _LINK.findall(header)
        if (href := resolve(target, base))
        for rel in _relations(parameters)
    )


def format_link_header(links: Iterable[HeaderLink]) -> str:
    """``<https://hub/>; rel="hub", <https://site/feed>; rel="self"``: one header.

    WebSub 7 asks for one combined header rather than several.
    """
    return ", ".join(
        f'<{header_url(link.href)}>; rel="{header_value(link.rel)}"' for link in links
    )


def _relations(parameters: str) -> Iterator[str]:
    found: dict[str, str] = {}
    for name, quoted, token in _PARAMETER.findall(parameters):
        # RFC 8288 3.3: "occurrences after the first MUST be ignored by parsers"
        found.setdefault(name.lower(), quoted or token)
    if "anchor" not in found:
        yield from found.get("rel", "").lower().split()
