"""URLs in feeds: made absolute, and reduced to what identifies a page.

Most fragments name a place in a page, and mean nothing to a hub. Some select a part of
the resource: a JSONPath begins with ``$``. A CSS path begins with ``.``, ``#``, ``[``
or ``*``, or with a common element's name before one of these, or before another name.
Any other fragment selects nothing: ``#top``, ``#!/page``, ``#:~:text=…``, ``#L12``,
``#v1.2``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit

import idna

LONGEST_SELECTOR: Final = 500
"""Characters; a longer fragment selects nothing."""

_JSON_PATH: Final = re.compile(r"\$(?:[.\[]|\Z)")
_ELEMENTS: Final = (
    "article|section|main|div|span|ul|ol|li|dl|dt|dd|p|h[1-6]|table|tbody|tr|td|th|a|"
    "body|nav|aside|header|footer|time|pre|code|figure|img|blockquote"
)
_CSS_PATH: Final = re.compile(
    rf"(?:(?:{_ELEMENTS})?[.#][A-Za-z_-]|(?:{_ELEMENTS})?\[[a-z]|\*)"
    rf"|(?:{_ELEMENTS})\s*[ >+~]\s*[A-Za-z.#*\[]"
)
_BEGINNING: Final = re.compile(rf"[#\[*]|\.(?![0-9])|{_JSON_PATH.pattern}")
_NESTED_QUANTIFIERS: Final = re.compile(
    r"(?<!\\)[*+}][?+]?\)[*+{]"  # such as (a+)+
)


@lru_cache(4096)
def selector_of(url: str) -> str:
    """The path in a URL's fragment, decoded; "" if the fragment selects nothing."""
    selector = unquote(url.partition("#")[2]).strip()
    if len(selector) > LONGEST_SELECTOR or not selector.isprintable():
        return ""
    is_path = is_json_path(selector) or _CSS_PATH.match(selector)
    return selector if is_path else ""


def is_meant_as_path(url: str) -> bool:
    """Whether a fragment begins like a path, though it may not be one."""
    fragment = unquote(url.partition("#")[2]).strip()
    return _BEGINNING.match(fragment) is not None


def is_json_path(selector: str) -> bool:
    return _JSON_PATH.match(selector) is not None


def selecting_fragment(url: str) -> str:
    """``#`` and the path in a normalized form; "" if the fragment selects nothing."""
    selector = selector_of(url)
    return f"#{quote(selector)}" if selector else ""


def may_take_forever(selector: str) -> bool:
    """Whether a JSONPath has a regular expression with directly nested quantifiers.

    Matching such an expression may take any time. Not all such expressions are found.
    """
    return is_json_path(selector) and bool(_NESTED_QUANTIFIERS.search(selector))


LONGEST = 8_192
"""Characters; a longer URL is not kept."""

_BLANKS = re.compile(r"[\x00-\x20\x7f]")
_LINE_BREAKS = re.compile(r"[\t\n\r]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_ORDINARY = re.compile(r"https?://[A-Za-z0-9.-]++(?::[0-9]{1,4})?(?![^/?#])")
# Cases spelled out: ``re.IGNORECASE`` makes these several times slower.
_AUTHORITY = re.compile(r"[hH][tT][tT][pP][sS]?:(//[^/?#]*)")
_USUAL = ("https://", "http://")
_NO_LOCATION = ("javascript:", "vbscript:", "data:")
_TRACKING = re.compile(r"(?<=[?&])utm_[^&#]*&?", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ASCII = "".join(map(chr, range(128)))


def is_web_url(url: str) -> bool:
    """Whether it is an http or https URL whose host and port can be read."""
    if _ORDINARY.match(url) is not None:
        return True
    authority = _AUTHORITY.match(url)
    if authority is None:
        return False
    try:
        _ = urlsplit(authority[0]).port
    except ValueError:  # half an IPv6 address, or a port beyond 65535
        return False
    return True


_LOWER_CASE_HOST = re.compile(r"https?://([a-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#]|$)")


def host_name(url: str) -> str:
    """The host in lower case, without the port; "" if the URL has none."""
    ordinary = _LOWER_CASE_HOST.match(url)
    if ordinary is not None:  # nearly always, in a tenth of the time
        return ordinary[1]
    return urlsplit(url).hostname or ""


def is_absolute(url: str) -> bool:
    return _SCHEME.match(url) is not None


def resolve(reference: str | None, base: str) -> str:
    """Make a reference absolute; "" if it is not a usable URL.

    Line breaks inside are dropped and blanks escaped, as browsers do. Scripts and
    inline data are refused. Without a base a relative reference stays as it is.
    """
    if (
        reference
        and reference.startswith(_USUAL)
        and " " not in reference
        and reference.isprintable()
        and len(reference) <= LONGEST
    ):
        return reference  # nearly all references
    if not reference:
        return ""
    url = reference.strip()
    if not url or len(url) > LONGEST:
        return ""
    if not _is_clean(url):
        url = _BLANKS.sub("%20", _LINE_BREAKS.sub("", url))
    if url.startswith(_USUAL):
        return url
    if url.lower().startswith(_NO_LOCATION):
        return ""
    if is_absolute(url):
        return url
    try:
        return urljoin(base, url)
    except ValueError:  # such as "//[": half an IPv6 address
        return ""


def _is_clean(url: str) -> bool:
    """Whether a URL has no blanks and control characters, and is not too long."""
    return len(url) <= LONGEST and " " not in url and url.isprintable()


def is_same_site(one: str, other: str) -> bool:
    """Whether two web URLs have the same host, or one host is below the other."""
    hosts = [_host(one), _host(other)]
    short, long = sorted(hosts, key=len)
    return bool(short) and f".{long}".endswith(f".{short}")


def _host(url: str) -> str:
    """The host without ``www.``; "" if it is not a web URL."""
    authority = _AUTHORITY.match(url)
    if authority is None:
        return ""
    host = authority[0].lower().partition("://")[2].rpartition("@")[2]
    return host.partition(":")[0].removeprefix("www.")


@lru_cache(4096)
def normal_url(url: str) -> str:
    """The normal form of a web URL (RFC 3986 6.2.2 and 6.2.3).

    "%7E" and "~" are the same, and so are hosts in either case, a default port and
    none, an empty path and "/". Other URLs are unchanged.
    """
    authority = _AUTHORITY.match(url)
    if authority is None:
        return url
    rest = url[authority.end() :]
    return _normal_root(authority[0], rest) + _ESCAPE.sub(_normal_escape, rest)


def requested_url(url: str) -> str:
    """The URL that is requested: without fragment, and scheme, host and port as in
    `normal_url`; path and query byte for byte.
    """
    url = url.partition("#")[0]
    authority = _AUTHORITY.match(url)
    if authority is None:
        return url
    rest = url[authority.end() :]
    return _normal_root(authority[0], rest) + rest


@lru_cache(4096)
def resource_url(url: str) -> str:
    """The normal form by which feeds are identified: equal for equal resources.

    It is the `normal_url` of the requested URL, with non-ASCII characters escaped as
    UTF-8, and the host in punycode. A fragment is kept only if it selects a part of the
    resource.
    """
    requested = requested_url(url)
    authority = _AUTHORITY.match(requested)
    if authority is None:
        return requested
    part = selecting_fragment(url) if "#" in url else ""
    rest = quote(requested[authority.end() :], safe=_ASCII, errors="surrogatepass")
    return normal_url(_in_ascii(authority[0]) + rest) + part


def _in_ascii(authority: str) -> str:
    """The authority with its host in punycode (UTS 46); unchanged if that is
    impossible.
    """
    if authority.isascii():
        return authority
    before, at, address = authority.rpartition("@")
    if not at:
        scheme, slashes, address = authority.partition("//")
        before = scheme + slashes
    host, colon, port = address.partition(":")
    try:
        return before + at + idna.encode(host, uts46=True).decode() + colon + port
    except UnicodeError:
        return authority


def _normal_root(authority: str, rest: str) -> str:
    """Scheme, host and port in lower case, followed by "/" unless ``rest`` begins with
    it.
    """
    scheme, _, host = authority.lower().partition("://")
    host = host.removesuffix(_DEFAULT_PORTS[scheme])
    slash = "" if rest.startswith("/") else "/"
    return f"{scheme}://{host}{slash}"


def _normal_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if _UNRESERVED.match(character) else escape[0].upper()


def without_tracking(url: str) -> str:
    """Drop ``utm_*`` parameters; everything else stays byte for byte."""
    if "utm_" not in url.lower():
        return url
    address, hash_mark, fragment = url.partition("#")
    return _TRACKING.sub("", address).rstrip("?&") + hash_mark + fragment


def without_scheme(url: str) -> str:
    """``//host/path`` of a web URL, the host in lower case; other URLs are unchanged.

    The same page under http and https is one page.
    """
    if url.startswith(_USUAL) and url.islower():
        return url[url.index("/") :]
    authority = _AUTHORITY.match(url)
    if authority is None:
        return url
    return authority[1].lower() + url[authority.end() :]


_LOCAL = (".localhost", ".local", ".internal", ".test", ".lan", ".home.arpa")


def is_public_url(url: str) -> bool:
    """Whether a URL is public: no private address, and no name that is only known
    locally.
    """
    host = host_name(url).rstrip(".")
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL)
