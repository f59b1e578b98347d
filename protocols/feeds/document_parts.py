"""Read a part of a resource that is not a feed, selected by a path in the URL's
fragment.

``#%24.store.price`` is a JSONPath (RFC 9535) into a JSON document, ``#.h-entry`` a CSS
path into a page (`protocols.urls`). The matches become one entry, written so that it
differs only if the content differs.

CSS paths are matched in time linear in the page. cssselect translates them to XPath,
which looks at all siblings of each element and merges its results one by one: ``p ~ p``
takes libxml2 cubic time, and ``p:nth-child(2)`` quadratic. Here each part of a path
becomes the set of elements that it matches, by their numbers in document order, and a
combinator goes over all elements once. Only conditions on a single element are left to
XPath.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Final

import jsonpath
import orjson
from cssselect import HTMLTranslator, SelectorError
from cssselect.parser import (
    CombinedSelector,
    Function,
    Matching,
    Negation,
    Pseudo,
    Relation,
    SpecificityAdjustment,
    Tree,
    parse,
    parse_series,
)
from cssselect.parser import Element as Named
from cssselect.xpath import ExpressionError
from lxml import etree

from protocols.feeds.context import ParseContext
from protocols.feeds.element import Element, text_of
from protocols.feeds.feed_links import parse_page
from protocols.feeds.jsonvalues import load_json
from protocols.feeds.limits import MAX_TEXT_BYTES, check_body, check_json, check_xml
from protocols.feeds.references import make_absolute
from protocols.feeds.text_encoding import to_utf8
from protocols.identity import fingerprint
from protocols.model import Entry, Feed, FeedFormat, Link, ParsedFeed, Text
from protocols.protocol_errors import EmptyDocument, InvalidDocument, LimitExceeded
from protocols.text import collapse
from protocols.urls import is_json_path

MOST_STEPS: Final = 10_000_000
"""Elements of the page times parts of the path. Each step takes 0.1 to 0.3 µs."""
_Place = tuple[bool, bool]
"""Whether to count from the last sibling; whether to count only siblings of one
name.
"""
_PLACES: Final[Mapping[str, Sequence[_Place]]] = {
    "first-child": ((False, False),),
    "last-child": ((True, False),),
    "only-child": ((False, False), (True, False)),
    "first-of-type": ((False, True),),
    "last-of-type": ((True, True),),
    "only-of-type": ((False, True), (True, True)),
}
_SERIES: Final[Mapping[str, _Place]] = {
    "nth-child": (False, False),
    "nth-last-child": (True, False),
    "nth-of-type": (False, True),
    "nth-last-of-type": (True, True),
}


def select(
    root: Element, path: str, *, most_steps: int = MOST_STEPS
) -> Sequence[Element]:
    """The elements that a CSS path matches, in the document's order.

    Raises `cssselect.SelectorError` or `lxml.etree.XPathError` for an invalid path, and
    `LimitExceeded`.
    """
    page = _Page(root, most_steps)
    found: set[int] = set()
    for each in parse(path):
        if each.pseudo_element is not None:
            raise ExpressionError("Pseudo-elements are not supported.")
        found |= page.matching(each.parsed_tree)
    return [page.elements[number] for number in sorted(found)]


def check_path(path: str) -> None:
    """Raise `cssselect.SelectorError` or `lxml.etree.XPathError` for an invalid CSS
    path.
    """
    select(etree.Element("html"), path)


class _Page:
    """A page's elements, each with the numbers of its parent and its previous sibling.

    The number is -1 if there is none.
    """

    def __init__(self, root: Element, most_steps: int) -> None:
        self.root = root
        self.elements: list[Element] = list(root.iter("*"))
        self.numbers: dict[Element | None, int] = {
            each: number for number, each in enumerate(self.elements)
        }
        self.parents = [
            self.numbers.get(each.getparent(), -1) for each in self.elements
        ]
        self.siblings: list[int] = []
        last: dict[int, int] = {}
        for number, parent in enumerate(self.parents):
            self.siblings.append(last.get(parent, -1))
            last[parent] = number
        self._steps = 0
        self._most_steps = most_steps

    def matching(self, tree: Tree) -> set[int]:
        """The elements that a parsed selector matches."""
        if isinstance(tree, Named):
            return self._asked(tree)
        found = self.matching(tree.selector)
        match tree:
            case CombinedSelector():
                after = self._after(tree.combinator, found)
                return after & self.matching(tree.subselector)
            case Negation():
                return found - self.matching(tree.subselector)
            case Matching() | SpecificityAdjustment():
                return found & set().union(*map(self.matching, tree.selector_list))
            case Relation():
                heads = (
                    self._before(str(sign.value), self._heads(each.parsed_tree))
                    for sign, each in tree.arguments
                )
                return found & set().union(*heads)
            case Pseudo() if tree.ident in _PLACES:
                for place in _PLACES[tree.ident]:
                    found &= self._placed(place, 0, 1)
                return found
            case Function() if tree.name in _SERIES:
                return found & self._placed(_SERIES[tree.name], *_series(tree))
        alone = copy(tree)
        alone.selector = Named()
        return found & self._asked(alone)

    def _asked(self, tree: Tree) -> set[int]:
        """The elements that a name, attributes, a text or a language selects, by
        XPath.
        """
        self._count()
        select = etree.XPath(f"descendant-or-self::{HTMLTranslator().xpath(tree)}")
        return {self.numbers[each] for each in select(self.root)}

    def _heads(self, tree: Tree) -> set[int]:
        """The elements that match the first part of a path and are followed by the
        rest.
        """
        rest: set[int] | None = None
        while isinstance(tree, CombinedSelector):
            found = self.matching(tree.subselector)
            found = found if rest is None else found & rest
            rest, tree = self._before(tree.combinator, found), tree.selector
        found = self.matching(tree)
        return found if rest is None else found & rest

    def _after(self, sign: str, found: set[int]) -> set[int]:
        """The elements that are below or after one of those found, as ``sign`` says."""
        self._count()
        nearest, is_far = self._way(sign)
        reached: set[int] = set()
        for number, near in enumerate(nearest):
            if near in found or (is_far and near in reached):
                reached.add(number)
        return reached

    def _before(self, sign: str, found: set[int]) -> set[int]:
        """The elements that one of those found is below or after, as ``sign`` says."""
        self._count()
        nearest, is_far = self._way(sign)
        reached: set[int] = set()
        for number in reversed(range(len(nearest))):
            if number in found or (is_far and number in reached):
                reached.add(nearest[number])
        reached.discard(-1)
        return reached

    def _way(self, sign: str) -> tuple[Sequence[int], bool]:
        return self.parents if sign in (" ", ">") else self.siblings, sign in (" ", "~")

    def _placed(self, place: _Place, step: int, start: int) -> set[int]:
        """The elements whose place, counted from 1, is in ``start``, ``start +
        step`` …
        """
        self._count()
        from_last, is_of_type = place
        counted: Counter[tuple[int, str]] = Counter()
        found: set[int] = set()
        numbers = range(len(self.elements))
        for number in reversed(numbers) if from_last else numbers:
            name = str(self.elements[number].tag) if is_of_type else ""
            key = self.parents[number], name
            counted[key] += 1
            beyond = counted[key] - start
            if (beyond % step == 0 <= beyond // step) if step else beyond == 0:
                found.add(number)
        return found

    def _count(self) -> None:
        self._steps += len(self.elements)
        if self._steps > self._most_steps:
            what = "the path times the elements of the page"
            raise LimitExceeded(what, self._most_steps)


def _series(function: Function) -> tuple[int, int]:
    try:
        step, start = parse_series(function.arguments)
    except ValueError:
        raise ExpressionError(f"Invalid series: '{function.arguments!r}'") from None
    return step, start


JSON_TYPE: Final = "application/json"
MOST_MATCHES: Final = 1_000
_LONGEST_TITLE: Final = 200


_NO_JSON_PATH: Final = (
    jsonpath.JSONPathError,
    ArithmeticError,  # from a number such as 1e999
    re.error,
    RecursionError,
    ValueError,
)
_NO_CSS_PATH: Final = (SelectorError, etree.XPathError, RecursionError)


def path_error(selector: str) -> str:
    """Why a path, as `protocols.urls.selector_of` returns it, is invalid; "" if it is
    valid.
    """
    try:
        if is_json_path(selector):
            jsonpath.compile(selector)
        else:
            check_path(selector)
    except (*_NO_JSON_PATH, *_NO_CSS_PATH) as error:
        return str(error).partition("\n")[0] or "it has too many parts"
    return ""


def read_fragment(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a document as one entry: the part that ``context.selector`` selects.

    Raises a `FeedError`: `InvalidDocument` for an invalid path, or one that matches
    nothing.
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
        raise _wrong(context, f"not a JSONPath: {reason}") from None
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
        raise _wrong(context, f"not a CSS path: {error}") from None
    if root is None or not found:
        raise _wrong(context, "nothing in the page matches it")
    _check_matches(len(found))
    content = make_absolute(Text(value="\n".join(_markup(found))), context.url)
    titles = (each for each in root.iter() if each.tag == "title")
    title = next((collapse(text_of(each)) for each in titles), "")
    return _entry(context, title[:_LONGEST_TITLE], content)


def _markup(found: Iterable[Element]) -> Iterator[str]:
    """Write out each match; a match inside another one is written twice."""
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
    """The part as a feed of one entry.

    The entry's id is that of the part; `hub.core.news.part_changes` makes one for each
    state.
    """
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
