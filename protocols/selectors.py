"""Fragments of URLs that select a part of what the URL leads to.

Most fragments name a place in a page, and mean nothing to a hub. A JSONPath begins with
``$``. A CSS path begins with ``.``, ``#``, ``[`` or ``*``, or with a usual element's
name before one of these, or before another name. Whatever else a fragment is, it
selects nothing: ``#top``, ``#!/page``, ``#:~:text=…``, ``#L12``, ``#v1.2``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

LONGEST: Final = 500
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
    """What a URL's fragment selects by, decoded; "" if it selects nothing."""
    selector = unquote(url.partition("#")[2]).strip()
    if len(selector) > LONGEST or not selector.isprintable():
        return ""
    is_path = is_json_path(selector) or _CSS_PATH.match(selector)
    return selector if is_path else ""


def is_meant_as_path(url: str) -> bool:
    """Whether a fragment begins as paths do, though it need not be one."""
    fragment = unquote(url.partition("#")[2]).strip()
    return _BEGINNING.match(fragment) is not None


def is_json_path(selector: str) -> bool:
    return _JSON_PATH.match(selector) is not None


def selecting_fragment(url: str) -> str:
    """``#`` and what it selects by, written in one way only; "" if it is nothing."""
    selector = selector_of(url)
    return f"#{quote(selector)}" if selector else ""


def may_take_forever(selector: str) -> bool:
    """Whether a JSONPath has a regular expression with one quantifier right within
    another: a text that it nearly matches may take any time. Not all such are told."""
    return is_json_path(selector) and bool(_NESTED_QUANTIFIERS.search(selector))
