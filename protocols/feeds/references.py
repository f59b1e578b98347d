"""Make relative references in HTML and XHTML absolute.

Nothing is parsed into a tree: tags are found by HTML's own rules (comments, scripts,
quotes and unquoted values included) and single values replaced, so that everything else
stays byte for byte as the publisher wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.feeds.element import Element
from protocols.feeds.scope import Scope
from protocols.model import Text
from protocols.urls import is_absolute, resolve

_NAMES: Final = (
    "action",
    "background",
    "cite",
    "data",
    "formaction",
    "href",
    "longdesc",
    "poster",
    "src",
)
_LISTS: Final = ("imagesrcset", "srcset")
_ADDRESSES: Final = frozenset(_NAMES)
_ABSOLUTE: Final = "https?:|mailto:|data:"


def _after(names: Iterable[str]) -> str:
    return "|".join(rf"""(?<=[\s"'/]{name}=)""" for name in names)


# Begins with a literal, so that other characters are skipped quickly. The cheapest
# conditions come first: the last two letters, which rule out "style" and "alt".
# Capitals and blanks are checked by the slower alternative.
_CANDIDATE: Final = re.compile(
    r"""=(?<=[A-Zacdefnorst\s][A-Zacdefnrt\s]=)(?!"https?:)(?:(?<=[A-Z\s]=)|"""
    + _after((*_NAMES, *_LISTS))
    + rf""")(?!["']?(?:{_ABSOLUTE}))"""
)
# No part of it can fail after it has begun, or be tried again, so that no input takes
# quadratic time. What is not closed ends with the text, as in browsers.
_PLAIN: Final = r"""[^<>"'=]*+(?:="[^"<>]*+"[^<>"'=]*+)*+>"""  # most tags, and faster
_ATTRIBUTES: Final = (
    r"(?:[\s/]++|[^\s/>][^\s/>=]*+"
    r"""(?:\s*+=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"'][^\s>]*+)?)?)*+(?:>|\Z)"""
)
_TOKEN: Final = re.compile(
    rf"<(?:([a-zA-Z][^\s/>]*+)(?:{_PLAIN}|{_ATTRIBUTES})"
    r"|!--.*?(?:-->|\Z)|!\[CDATA\[.*?(?:\]\]>|\Z))",
    re.DOTALL,
)
_RAW: Final = "script|style|textarea|title|xmp|iframe|noembed|noframes|plaintext"
_END_OF_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])|\Z", re.IGNORECASE)
    for name in _RAW.split("|")
}
_ATTRIBUTE: Final = re.compile(
    r"""([^\s/>][^\s/>=]*+)"""
    r"""(?:(\s*+=\s*+)(?:"([^"]*+)"?|'([^']*+)'?|([^\s>"'][^\s>]*+)))?"""
)
# Each "<" begins a tag and is inside none; values are quoted, names in lower case.
_IS_PLAIN: Final = re.compile(
    rf"[^<]*+(?:<(?:/[^<>=]*+|(?!(?i:{_RAW})[\s/>])[a-zA-Z][^\s<>/\"'=]*+"
    r"""(?:[\s/][^<>"'=]*+(?:(?<![A-Z\s])="[^"<>]*+"[^<>"'=]*+)*+)?)>[^<]*+)*+"""
).fullmatch
# Also checks the last two letters first: those of a name in lower case.
_PLAIN_ADDRESS: Final = re.compile(
    rf"""=(?<=[acdefnorst][acdefnrt]=)(?!"https?:)"""
    rf"""(?:(?:{_after(_NAMES)})"(?P<one>[^"<>]*+)"""
    rf"""|(?:{_after(_LISTS)})"(?P<list>[^"<>]*+))"""
)
_SOURCE: Final = re.compile(r"([\s,]*+)(\S*[^\s,])(\s[^,]*)?")
_ORIGIN: Final = re.compile(r"https?://[^/?#]+")
# References that urljoin would only append to the origin, or to the page.
_IS_SIMPLE: Final = re.compile(
    r"/|/[!-.0-~][!-~]{0,4000}|#[!-~]{0,4000}|\?#?"
).fullmatch
MOST_SOURCES: Final = 1_000
"""The number of URLs in one list that are resolved; later ones stay as they are."""
MOST_GROWTH: Final = 10_000_000
"""Characters by which one text may become longer: a base may be long, and references
many and short. References beyond that stay as they are.
"""
_QUOTES: Final = {'"': "%22", "'": "%27", "<": "%3C", ">": "%3E", "&": "&amp;"}
_ESCAPES: Final = str.maketrans(_QUOTES)


class _Base(Struct, frozen=True):
    """A base, escaped for use in attributes, and the parts that most references
    need.
    """

    url: str
    origin: str
    page: str  # without fragment

    @classmethod
    def of(cls, url: str) -> _Base:
        return cls.of_tree(url.translate(_ESCAPES))

    @classmethod
    def of_tree(cls, url: str) -> _Base:
        """A base for values that are escaped later."""
        authority = _ORIGIN.match(url)
        return cls(url, authority[0] if authority else "", url.partition("#")[0])

    def resolve(self, reference: str) -> str:
        if _IS_SIMPLE(reference):
            if reference[0] == "#":
                return self.page + reference
            if reference[0] == "?":  # an empty query, which urljoin drops
                return self.page.partition("?")[0] + reference
            if self.origin and "/." not in reference:
                return self.origin + reference
        return resolve(reference, self.url)


def has_relative_references(markup: str) -> bool:
    """Whether there may be relative references, in a quick test.

    It errs only in lists of URLs whose first one is absolute.
    """
    return "<" in markup and _CANDIDATE.search(markup) is not None


def may_be_relative(text: Text) -> bool:
    """Like `has_relative_references`, for a text, which need not be markup."""
    return text.type in ("html", "xhtml") and has_relative_references(text.value)


def resolve_inside(element: Element, scope: Scope) -> None:
    """Make URLs absolute inside descendants that have an ``xml:base`` of their own.

    ``scope`` is the one inside the element; references with its base are left as they
    are.
    """
    for child in element:
        inner = scope.within(child)
        if inner.base != scope.base:
            _resolve_all(child, inner)
        else:
            resolve_inside(child, inner)


def _resolve_all(element: Element, scope: Scope) -> None:
    base = _Base.of_tree(scope.base)
    for name, value in element.items():
        element.attrib[name] = _resolve_value(name, value, base)
    for child in element:
        _resolve_all(child, scope.within(child))


def make_absolute(text: Text | None, base: str) -> Text | None:
    """The text with absolute references, if it is markup and there is a base."""
    if text is None or not base or not may_be_relative(text):
        return text
    return replace(text, value=resolve_references(text.value, base))


def resolve_references(markup: str, url: str) -> str:
    """Resolve every relative URL in the attributes of tags against a base."""
    base = _Base.of(url)
    if _IS_PLAIN(markup):
        return _resolve_plain(markup, base)
    candidates = [match.start() for match in _CANDIDATE.finditer(markup)][::-1]
    parts: list[str] = []
    copied = grown = 0
    for start, end in _tags(markup):
        while candidates and candidates[-1] < start:
            candidates.pop()
        if not candidates or grown > MOST_GROWTH:
            break
        if candidates[-1] < end:
            resolved = _resolve_tag(markup[start:end], base)
            parts += (markup[copied:start], resolved)
            grown += len(resolved) - (end - start)
            copied = end
    parts.append(markup[copied:])
    return "".join(parts)


def _resolve_plain(markup: str, base: _Base) -> str:
    """Like `resolve_references`, if all brackets belong to tags (`_IS_PLAIN`).

    A URL is in a tag if the last bracket before it opens one.
    """
    parts: list[str] = []
    copied = looked = grown = 0
    is_inside = False
    for address in _PLAIN_ADDRESS.finditer(markup):
        if grown > MOST_GROWTH:
            break
        start, end = address.span(address.lastindex or 0)
        opened, closed = (
            markup.rfind("<", looked, start),
            markup.rfind(">", looked, start),
        )
        is_inside = opened > closed or (is_inside and opened == closed)
        looked = end
        if is_inside:
            resolve_value = _resolve_sources if address["list"] else _resolve_reference
            resolved = resolve_value(markup[start:end], base)
            parts += (markup[copied:start], resolved)
            grown += len(resolved) - (end - start)
            copied = end
    parts.append(markup[copied:])
    return "".join(parts)


def _tags(markup: str) -> Iterator[tuple[int, int]]:
    """The start and end of each start tag that is markup, so not in comments or
    scripts.
    """
    position = 0
    while token := _TOKEN.search(markup, position):
        start, position = token.span()
        if token.lastindex:
            yield start, position
            raw = _END_OF_RAW.get(token[1].lower())
            if raw and not markup.endswith("/>", start, position):
                end = raw.search(markup, position)
                position = end.start() if end else len(markup)


def _resolve_tag(tag: str, base: _Base) -> str:
    parts: list[str] = []
    position = 0
    for attribute in _ATTRIBUTE.finditer(tag, 1):
        group = attribute.lastindex or 0
        if group < 3:
            continue
        value = attribute[group]
        resolved = _resolve_value(attribute[1].lower(), value, base)
        if resolved != value:
            parts += (tag[position : attribute.start(group)], resolved)
            position = attribute.end(group)
    parts.append(tag[position:])
    return "".join(parts)


def _resolve_value(name: str, value: str, base: _Base) -> str:
    if name in _ADDRESSES:
        return _resolve_reference(value, base)
    if name in _LISTS:
        return _resolve_sources(value, base)
    return value


def _resolve_reference(reference: str, base: _Base) -> str:
    """Resolve one reference.

    ``&amp;`` is not decoded: it makes no difference to resolving.
    """
    plain = unescape(reference) if "&#" in reference else reference
    if not plain.startswith("/") and is_absolute(plain.strip()):
        return reference
    resolved = base.resolve(plain)
    if plain is not reference:
        return resolved.translate(_ESCAPES) or reference
    return resolved or reference


def _resolve_sources(sources: str, base: _Base) -> str:
    """Resolve a ``srcset``: URLs, which may contain commas, and their descriptors."""
    parts: list[str] = []
    position = 0
    for _ in range(MOST_SOURCES):
        source = _SOURCE.match(sources, position)
        if source is None:
            break
        parts += (source[1], _resolve_reference(source[2], base), source[3] or "")
        position = source.end()
    parts.append(sources[position:])
    return "".join(parts)
