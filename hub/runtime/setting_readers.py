"""Readers of settings: text in, value out; a ValueError says what was expected."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from protocols.languages import reduce_language

_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
"""A host name. International names are in their ASCII form (xn--…), as in requests."""

_URL = re.compile(r"[]!#-;=?-Z\[_a-z~]+")
"""The characters that RFC 3986, section 2 allows in a URL."""

DAY = 86_400.0
"""A day in seconds."""

Addresses = ipaddress.IPv4Network | ipaddress.IPv6Network


def line(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise ValueError("expected printable ASCII on one line")
    return value


def language(value: str) -> str:
    if not value or reduce_language(value) != value:
        raise ValueError("expected a language such as en or de-CH")
    return value


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(value)

    return read


def seconds(low: float, high: float) -> Callable[[str], float]:
    def read(value: str) -> float:
        number = _number(value)
        if not low <= number <= high:
            raise ValueError(f"expected seconds, from {low:g} to {high:g}")
        return number

    return read


def days_or_all(most: float) -> Callable[[str], float]:
    """A number of days; infinite for ``all``."""

    def read(value: str) -> float:
        number = _number(value)
        if value == "all":
            return math.inf
        if not 0 <= number <= most:
            raise ValueError(f"expected days, from 0 to {most:g}, or all")
        return number

    return read


def _number(text: str) -> float:
    """The number in the text; NaN if there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def one_of(*choices: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return value

    return read


def networks(value: str) -> tuple[Addresses, ...]:
    try:
        return tuple(
            ipaddress.ip_network(part) for part in value.replace(",", " ").split()
        )
    except ValueError as error:
        raise ValueError(
            f"expected networks like 10.0.0.0/8,::1/128 ({error})"
        ) from None


def path_prefixes(value: str) -> tuple[str, ...]:
    """Beginnings of paths: ``/checkout,/cart``."""
    prefixes = tuple(value.replace(",", " ").split())
    if not all(each.startswith("/") for each in prefixes):
        raise ValueError("expected beginnings of paths such as /cart,/admin")
    return prefixes


def some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    def read(value: str) -> tuple[str, ...]:
        named = tuple(value.replace(",", " ").split())
        if not set(named) <= set(choices):
            raise ValueError(f"expected any of {', '.join(choices)}")
        return named

    return read


def hosts(value: str) -> tuple[str, ...]:
    names = tuple(value.replace(",", " ").lower().split())
    if not all(_HOST.fullmatch(name) for name in names):
        raise ValueError("expected names of hosts such as example.org,blog.example")
    return names


def database(value: str) -> str:
    """The path of a file, or the URL of a database on a server. None of SQLite's other
    names: the hub opens its database several times, and what is acknowledged must
    survive a crash. A URL is examined when the database is opened."""
    scheme, _, path = value.partition(":")
    if scheme in ("postgresql", "postgres") and path.startswith("//"):
        return f"postgresql:{path}"
    if scheme != "sqlite" or not path:
        raise ValueError("expected sqlite:PATH or postgresql://HOST/DATABASE")
    if path.lstrip("/").startswith((":", "file:")):
        raise ValueError("expected sqlite:PATH, the path of a file")
    if path.startswith("~/"):  # which no shell expands behind "sqlite:"
        return f"{scheme}:{_at_home(path)}"
    return value


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(f"expected sqlite:PATH without ~ ({error})") from None


def text_file(value: str) -> str:
    try:
        is_there = Path(value).is_file()
    except OSError:  # the name is too long
        is_there = False
    if not is_there or not os.access(value, os.R_OK):
        raise ValueError("expected the path of a file that can be read")
    return value


def directory(value: str) -> str:
    """The path of a directory. Whether it exists is found out when it is used: a share
    may be mounted later."""
    if "\0" in value or Path(value).is_file():
        raise ValueError("expected the path of a directory")
    return value


def origin_url(value: str) -> str:
    """A URL that can stand in headers, documents and pages as it is."""
    try:
        parts = urlsplit(value)
        is_known = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        is_known = False
    if not is_known or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(
            "expected an http or https URL without query or fragment, user or password"
        )
    if not _URL.fullmatch(value) or not _is_host(parts.hostname or ""):
        raise ValueError("expected a URL in ASCII, its host as xn--… if need be")
    return value.rstrip("/")


def origins(value: str) -> tuple[str, ...]:
    """Origins as browsers send them: ``https://app.example``."""
    named = tuple(value.replace(",", " ").split())
    for each in named:
        try:
            is_origin = each == "*" or (
                origin_url(each) == each and not urlsplit(each).path
            )
        except ValueError:
            is_origin = False
        if not is_origin or each != each.lower():
            raise ValueError("expected origins such as https://app.example, or *")
    return named


def _is_host(name: str) -> bool:
    try:
        return bool(_HOST.fullmatch(name)) or ipaddress.ip_address(name).version == 6
    except ValueError:
        return False
