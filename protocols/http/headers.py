"""HTTP headers that the hub reads and writes.

Reading is lenient. Writing is exact, and no value can end its header early, whatever
text it is made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Final
from urllib.parse import quote

import orjson

from protocols.dates import parse_date
from protocols.urls import resolve

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_IN_BRACKETS = "".join(set(_PRINTABLE) - set(' "<>'))


def header_value(text: str) -> str:
    """The text, with everything except printable ASCII percent-encoded as UTF-8."""
    if text.isascii() and text.isprintable():
        return text
    return quote(text, safe=_PRINTABLE, errors="replace")


def header_url(url: str) -> str:
    """A URL for use between angle brackets: blanks and quotes are escaped, too."""
    return quote(url, safe=_IN_BRACKETS, errors="replace")


LONGEST = 2**31
"""Seconds. RFC 9111 1.2.2 says of a larger number: "the cache MUST consider the value
to be 2147483648".
"""


def parse_delta_seconds(text: str) -> int | None:
    """The number of seconds; ``None`` unless the text is digits only, without a
    sign.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    return LONGEST if len(digits) > len(str(LONGEST)) else min(int(digits), LONGEST)


def quality(accept: str, media_type: str) -> float:
    """The weight of a type that ``Accept`` names, from 0 to 1; 0 if it is not named.

    Ranges (``*/*``) name no type. A weight that is no number counts as 1.
    """
    best = 0.0
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        if name == media_type:
            best = max(best, _weight(parameters))
    return best


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 1.0
    return 1.0


OCTET_STREAM: Final = "application/octet-stream"
"""The type of a body whose sender does not say (RFC 9110 8.3)."""
_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA_TYPE = re.compile(rf"\s*({_NAME}/{_NAME})\s*(?:[;,]|$)")
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s;,"']+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ContentType:
    """Both in lower case; "" if the header has none or is malformed."""

    media_type: str = ""
    charset: str = ""


def parse_content_type(header: str) -> ContentType:
    media_type = _MEDIA_TYPE.match(header)
    charset = _CHARSET.search(header)
    return ContentType(
        media_type=media_type[1].lower() if media_type else "",
        charset=charset[1].lower() if charset else "",
    )


def sendable_content_type(header: str, default: str) -> str:
    """The header unchanged, or the part of it that may be sent on.

    A field's value is US-ASCII (RFC 9110 5.5): a parameter with any other character is
    dropped. Without a media type, it is the ``default``.
    """
    if header.isascii() and header.isprintable() and header.strip():
        return header
    media_type, *parameters = map(str.strip, header.split(";"))
    if not parse_content_type(media_type).media_type:
        return default
    return "; ".join([media_type, *filter(_is_sendable, parameters)])


def _is_sendable(parameter: str) -> bool:
    """Whether a parameter may be sent.

    False for parts of a quoted string that was split at a semicolon in it.
    """
    is_whole = bool(parameter) and parameter.count('"') % 2 == 0
    return is_whole and parameter.isascii() and parameter.isprintable()


DAY = 86_400.0
_DIRECTIVE = re.compile(r'([^\s=,;"]+)(?:\s*=\s*(?:"([^"]*)"?|([^\s,;"]*)))?')


def freshness(
    *, cache_control: str, expires: str, date: str, age: str, cap: float = DAY
) -> float | None:
    """Seconds from the answer's arrival, at most ``cap``; ``None`` if it names no time.

    Zero means that the time has passed. ``max-age`` overrides ``Expires`` (RFC 9111
    5.3), which counts from ``Date`` and not from the hub's own clock. ``no-cache`` and
    ``no-store`` name no time, and neither does a malformed number or date.
    """
    directives = _directives(cache_control)
    if directives.get("no-cache") == "" or "no-store" in directives:
        return None
    if "max-age" in directives:
        seconds: float | None = parse_delta_seconds(directives["max-age"])
    else:
        seconds = _lifetime(expires, date)
    if seconds is None:
        return None
    return min(max(seconds - (parse_delta_seconds(age) or 0), 0.0), cap)


def _lifetime(expires: str, date: str) -> float | None:
    end, start = parse_date(expires), parse_date(date)
    return None if end is None or start is None else (end - start).total_seconds()


def _directives(cache_control: str) -> Mapping[str, str]:
    """Directives by lower-case name; of repeated ones the first counts (RFC 9111
    4.2.1).
    """
    found: dict[str, str] = {}
    for name, quoted, token in _DIRECTIVE.findall(cache_control):
        found.setdefault(name.lower(), quoted or token)
    return found


# A name begins only where one can, no part is tried in a second way, and a quote that
# is not closed soon is not one: otherwise a header of words alone takes seconds.
_LINK = re.compile(r'<([^<>]*+)>((?:"(?:[^"\\]|\\.){0,999}+"|[^<"])*+)')
_PARAMETER_NAME = "[A-Za-z0-9*_-]"
_PARAMETER = re.compile(
    rf"""(?<!{_PARAMETER_NAME})({_PARAMETER_NAME}++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s;,"]*+))"""
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
    """A link with all its relations, in lower case, and the type and title of its
    target.
    """

    href: str
    relations: tuple[str, ...]
    type: str
    title: str


def parse_link_header(header: str, base: str = "") -> tuple[HeaderLink, ...]:
    """Every relation named, in order; a link with two relations gives two.

    Lenient: otherwise hubs would be lost to a missing semicolon or missing quotes.
    Links of another resource (``anchor``) are left out.
    """
    return tuple(
        HeaderLink(href=href, rel=rel)
        for target, parameters in _links(header)
        if (href := resolve(target, base))
        for rel in _relations(parameters)
    )


def parse_typed_links(header: str, base: str = "") -> tuple[TypedLink, ...]:
    """Every link with its type and title, in order; as lenient as
    `parse_link_header`.
    """
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
    """Write all links as one header.

    ``<https://hub/>; rel="hub", <https://site/feed>; rel="self"``: WebSub 7 asks for
    one combined header rather than several.
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


_THIS_CENTURY: Final = 1_000_000_000
_LONGEST_BODY: Final = 64 * 1024


def parse_reset(header: str, body: bytes, now: datetime) -> float | None:
    """Seconds from ``now``, at most 2**31; None if it is past or malformed.

    ``header`` is the value of ``X-RateLimit-Reset``, "" if there is none; then the
    member ``retry_after`` of a JSON ``body`` is read in the same way.
    """
    value = _number(header.strip())
    if value is None and len(body) <= _LONGEST_BODY:
        value = _member(body)
    if value is None:
        return None
    seconds = value - now.timestamp() if value >= _THIS_CENTURY else value
    return min(seconds, float(LONGEST)) if seconds > 0 else None


def _member(body: bytes) -> float | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    found = document.get("retry_after") if isinstance(document, dict) else None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return _number(str(found)) if is_number or isinstance(found, str) else None


def _number(text: str) -> float | None:
    """A decimal number of 0 or more; None for anything else."""
    digits, _, fraction = text.partition(".")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        return None
    if fraction and not (fraction.isascii() and fraction.isdigit()):
        return None
    return float(text)


ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, "
    "application/json;q=0.9, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.1"
)
ACCEPT_ENCODING: Final = "gzip, br"
"""Only codings that the hub decodes."""

_NO_PARENTHESES = str.maketrans({"(": "%28", ")": "%29", "\\": "%5C"})


def conditional_headers(etag: str, last_modified: str) -> dict[str, str]:
    """The headers of a conditional request; a value is "" if the server never sent it.

    Both are sent back byte for byte: an ETag is opaque, and a server need not recognize
    a date that was written anew.
    """
    headers = {}
    if etag:
        headers["If-None-Match"] = etag
    if last_modified:
        headers["If-Modified-Since"] = last_modified
    return headers


def user_agent(
    product: str,
    *,
    url: str = "",
    contact: str = "",
    subscribers: int | None = None,
    feed_id: int | None = None,
) -> str:
    """``Fanfare/1.0 (+https://hub.example; a@b.example; 12 subscribers; feed-id=7)``.

    ``product`` includes its version; values that are empty or None are left out.
    """
    before, after = _around(product, url, contact, subscribers, feed_id is not None)
    return before + after if feed_id is None else f"{before}{feed_id}{after}"


@lru_cache(1024)
def _around(
    product: str, url: str, contact: str, subscribers: int | None, has_id: bool
) -> tuple[str, str]:
    """The text before and after the feed's id, cached because many feeds share it."""
    noun = "subscriber" if subscribers == 1 else "subscribers"
    facts = (
        f"+{url}".translate(_NO_PARENTHESES) if url else "",
        contact.translate(_NO_PARENTHESES),
        "" if subscribers is None else f"{subscribers} {noun}",
        "feed-id=" if has_id else "",
    )
    comment = "; ".join(filter(None, facts))
    before = header_value(f"{product} ({comment}" if comment else product)
    return before, ")" if comment else ""


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Seconds from ``now``, at most 2**31; ``None`` if it is past or malformed.

    The header has seconds or a date. The caller decides how long the hub will wait.
    """
    seconds = parse_delta_seconds(header)
    if seconds is not None:
        return float(seconds)
    moment = parse_date(header)
    if moment is None or moment < now:
        return None
    return min((moment - now).total_seconds(), float(LONGEST))
