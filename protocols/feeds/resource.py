"""Part of a resource that is no feed: what a path in the URL's fragment selects.

``#%24.store.price`` is a JSONPath (RFC 9535) into a JSON document, ``#.h-entry`` a CSS
path into a page (`protocols.selectors`). What matches becomes one entry, in a form in
which it is only different if it says something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import jsonpath
import orjson
from cssselect import SelectorError
from lxml import etree

from protocols.errors import EmptyDocument, InvalidDocument, LimitExceeded
from protocols.feeds.context import ParseContext
from protocols.feeds.csspath import check_path, select
from protocols.feeds.discovery import parse_page
from protocols.feeds.element import Element, text_of
from protocols.feeds.encoding import to_utf8
from protocols.feeds.jsonvalues import load_json
from protocols.feeds.limits import MAX_TEXT_BYTES, check_body, check_json, check_xml
from protocols.feeds.references import make_absolute
from protocols.identity import fingerprint
from protocols.model import Entry, Feed, FeedFormat, Link, ParsedFeed, Text
from protocols.selectors import is_json_path
from protocols.text import collapse

JSON_TYPE: Final = "application/json"
MOST_MATCHES: Final = 1_000
_LONGEST_TITLE: Final = 200


_NO_JSON_PATH: Final = (
    jsonpath.JSONPathError,
    ArithmeticError,  # of a number such as 1e999
    re.error,
    RecursionError,
    ValueError,
)
_NO_CSS_PATH: Final = (SelectorError, etree.XPathError, RecursionError)


def path_error(selector: str) -> str:
    """Why a path, as `protocols.selectors.selector_of` gives it, cannot be read; ""
    if it can."""
    try:
        if is_json_path(selector):
            jsonpath.compile(selector)
        else:
            check_path(selector)
    except (*_NO_JSON_PATH, *_NO_CSS_PATH) as error:
        return str(error).partition("\n")[0] or "it has too many parts"
    return ""


def read_fragment(body: bytes, context: ParseContext) -> ParsedFeed:
    """The one entry that ``context.selector`` makes of a document.

    Raises a `FeedError`: `InvalidDocument` for a path that is none, or that nothing
    matches.
    """
    check_body(body)
    utf8 = to_utf8(body, context.content_type).body.strip()
    if not utf8:
        raise EmptyDocument
    if is_json_path(context.selector):
        return _read_json(utf8, context)
    return _read_page(utf8, context)


def _read_json(body: bytes, context: ParseContext) -> ParsedFeed:
    check_json(body)
    document = load_json(body)
    try:
        path = jsonpath.compile(context.selector)
        matches = islice(path.finditer(document), MOST_MATCHES + 1)
        found = [match.obj for match in matches]
    except _NO_JSON_PATH as error:
        reason = str(error).partition("\n")[0]
        raise _wrong(context, f"no JSONPath: {reason}") from None
    if not found:
        raise _wrong(context, "nothing in the document matches it")
    _check_matches(len(found))
    value = found[0] if len(found) == 1 else found
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        raise LimitExceeded("the depth of nested JSON", 254) from None
    return _entry(context, _title_of(value), Text(value=written, type=JSON_TYPE))


def _title_of(value: object) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return collapse(str(value))[:_LONGEST_TITLE]
    return ""


def _read_page(body: bytes, context: ParseContext) -> ParsedFeed:
    check_xml(body)
    root = parse_page(body)
    try:
        found = [] if root is None else select(root, context.selector)
    except _NO_CSS_PATH as error:
        raise _wrong(context, f"no CSS path: {error}") from None
    if root is None or not found:
        raise _wrong(context, "nothing in the page matches it")
    _check_matches(len(found))
    content = make_absolute(Text(value="\n".join(_markup(found))), context.url)
    titles = (each for each in root.iter() if each.tag == "title")
    title = next((collapse(text_of(each)) for each in titles), "")
    return _entry(context, title[:_LONGEST_TITLE], content)


def _markup(found: Iterable[Element]) -> Iterator[str]:
    """What stands in another match comes with each of both."""
    size = 0
    for each in found:
        written = etree.tostring(
            each, encoding="unicode", method="html", with_tail=False
        ).strip()
        size += len(written)
        if size > MAX_TEXT_BYTES:
            raise LimitExceeded("the characters of all matches", MAX_TEXT_BYTES)
        yield written


def _check_matches(count: int) -> None:
    if count > MOST_MATCHES:
        raise LimitExceeded("the number of matches", MOST_MATCHES)


def _entry(context: ParseContext, title: str, content: Text | None) -> ParsedFeed:
    """Its id is that of the part; `hub.core.news.resources` makes one of each state."""
    part = f"{context.url}#{context.selector}"
    id = f"urn:fanfare:part:{fingerprint(part):016x}"
    link = Link(href=context.url)
    entry = Entry(
        key=id, id=id, title=title or context.selector, content=content, links=(link,)
    )
    return ParsedFeed(
        format=FeedFormat.PART,
        feed=Feed(title=title or context.selector, links=(link,)),
        entries=(entry,),
        path="selected",
    )


def _wrong(context: ParseContext, reason: str) -> InvalidDocument:
    return InvalidDocument(f"#{context.selector[:200]}", reason)
