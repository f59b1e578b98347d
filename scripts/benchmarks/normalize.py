"""A set of feed documents as the web has them, read; and their entries, rendered.

The hub: `protocols.feeds`, the whole ladder of repairs included. The floors: lxml
building its tree and nothing else, feedparser with and without its cleaning of HTML,
and orjson writing the entries as they are. All work in turn on some documents before
the next ones come, and each is timed by the CPU of this one thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import make_dataclass, replace
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from statistics import median
from time import thread_time

import feedparser
import orjson
from lxml import etree
from msgspec import Struct

from hub.core.fetched import body_hash
from hub.core.news.fetch_commit import is_known_body
from protocols.feeds import parse
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.feeds.lenient import parse_leniently
from protocols.identity import fingerprint
from protocols.model import IdSource, Notification, ParsedFeed, Status
from protocols.protocol_errors import MalformedDocument
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json
from scripts.benchmarks.documents import FeedDocument, make_documents
from scripts.benchmarks.measuring import Finding, Size
from storage.records import Polling

ENTRIES = 10
"""In a record that is rendered."""
SMALL = 20_000
"""Bytes; smaller documents are also measured by themselves."""

TURN = 40
"""Documents that one parser reads before another has its turn: many enough that filling
the caches anew is little of it, for the fastest, too."""

Work = Callable[[], object]


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    documents = make_documents(size.pick(120, 24, 12))
    rounds = size.pick(9, 1, 1)
    xml = [each for each in documents if each.is_xml and each.is_well_formed]
    small = [each for each in xml if len(each.body) < SMALL]
    feeds = [each for each in documents if each.is_xml]
    for finding in _against_feedparser(feeds, size.pick(3, 1, 1)):
        yield finding
    yield _whole("whole document", xml, rounds, at_most=4.5)
    yield _whole("document under 20 kB", small, rounds, at_most=None)
    yield _known_body(xml, rounds)
    for finding in (*_known_entries(xml, rounds), *_rendered(documents, rounds)):
        yield finding


def _against_feedparser(
    documents: Sequence[FeedDocument], rounds: int
) -> list[Finding]:
    """Ill-formed documents, too: both sides have to mend them."""
    spent = _spend(
        rounds,
        [
            (
                partial(_read, each),
                partial(_feedparser, each.body),
                partial(
                    _feedparser,
                    each.body,
                    sanitize_html=False,
                    resolve_relative_uris=False,
                ),
            )
            for each in documents
        ],
    )
    count = len(documents)
    return [
        _faster("whole document, feedparser's default", spent, 1, count, 25),
        _faster("the same, unsanitized and unresolved", spent, 2, count, 9),
    ]


def _whole(
    measure: str, documents: Sequence[FeedDocument], rounds: int, at_most: float | None
) -> Finding:
    works = [(partial(_read, each), partial(_build_tree, each)) for each in documents]
    return _finding(measure, "lxml", _spend(rounds, works), len(documents), at_most)


def _known_body(documents: Sequence[FeedDocument], rounds: int) -> Finding:
    """A body that is the last one's: what it takes to know that."""
    works = []
    for each in documents:
        polling = Polling(body_hash=body_hash(each.body))
        known = partial(_recognize, polling, each.body)
        works.append((known, partial(_build_tree, each)))
    spent = _spend(rounds, works)
    return _finding("body already seen", "lxml", spent, len(documents), 0.2)


def _known_entries(documents: Sequence[FeedDocument], rounds: int) -> list[Finding]:
    """Documents that were read before, with another head; then with a new entry, too.

    Those of which parts cannot be read are among them, and read whole.
    """
    works = []
    for each in documents:
        parsed = parse(each.body, replace(each.context, known=b""))
        body = each.body.replace(b"</title>", b"!</title>", 1)
        works.append(
            (
                partial(parse, body, replace(each.context, known=_known(parsed, 0))),
                partial(parse, body, replace(each.context, known=_known(parsed, 1))),
                partial(_build_tree, each),
            )
        )
    spent = _spend(rounds, works)
    by_none = [(none, bare) for none, _, bare in spent]
    by_one = [(one, bare) for _, one, bare in spent]
    return [
        _finding("document of known entries", "lxml", by_none, len(works), 0.5),
        _finding("document with one new entry", "lxml", by_one, len(works), 1.2),
    ]


def _known(parsed: ParsedFeed, new: int) -> bytes:
    """All entries but for the first ``new`` ones, as the hub remembers them."""
    outline = parsed.outline
    if outline is None:
        return b""
    pairs = [*zip(outline.slices, parsed.entries, strict=True)][new:]
    known = [
        KnownSlice(slice, fingerprint(each.key), each.id_source is IdSource.LINK)
        for slice, each in pairs
        if each.id_source in (IdSource.FEED, IdSource.LINK)
    ]
    is_all = len(known) == len(parsed.entries)
    region, count = (outline.region, len(known)) if is_all else (0, 0)
    return pack_known(outline.setting, known, region=region, count=count)


def _rendered(documents: Sequence[FeedDocument], rounds: int) -> list[Finding]:
    notifications = [
        _notification(each, parse_leniently(each.body, each.context))
        for each in documents
        if each.is_well_formed
    ]
    full = [each for each in notifications if len(each.entries or ()) == ENTRIES]
    spent = _spend(
        rounds,
        [
            (
                partial(render_json, each),
                partial(render_atom, each),
                partial(_dump, _as_dataclasses(each.entries)),
            )
            for each in full
        ],
    )
    by_json = [(ours, bare) for ours, _, bare in spent]
    by_atom = [(ours, bare) for _, ours, bare in spent]
    return [
        _finding("record of 10 entries, JSON", "orjson", by_json, len(full), 2),
        _finding("record of 10 entries, Atom", "orjson", by_atom, len(full), 6),
    ]


def _notification(document: FeedDocument, parsed: ParsedFeed) -> Notification:
    return Notification(
        topic=document.context.url,
        hub="https://hub.example/hub",
        status=Status(
            code=200, http="Fetched (ring) 200 3600 and parsed 10/10 entries"
        ),
        feed=parsed.feed,
        entries=parsed.entries[:ENTRIES],
    )


# --- what is timed ---


def _read(document: FeedDocument) -> None:
    """Of an ill-formed document there may be nothing that is certain to be right."""
    try:
        parse_leniently(document.body, document.context)
    except MalformedDocument:
        if document.is_well_formed:
            raise


def _build_tree(document: FeedDocument) -> None:
    etree.fromstring(document.body)


def _feedparser(body: bytes, **options: bool) -> None:
    feedparser.parse(BytesIO(body), **options)


def _recognize(polling: Polling, body: bytes) -> None:
    if not is_known_body(polling, body_hash(body)):
        raise AssertionError("a body that was seen is not known")


def _dump(entries: object) -> None:
    orjson.dumps(entries)


def _as_dataclasses(value: object) -> object:
    """The same value, of dataclasses where it is of structs: orjson writes those."""
    if isinstance(value, tuple):
        return tuple(map(_as_dataclasses, value))
    if not isinstance(value, Struct):
        return value
    fields = {each: getattr(value, each) for each in value.__struct_fields__}
    made = _dataclass_of(type(value).__name__, tuple(fields))
    return made(**{name: _as_dataclasses(each) for name, each in fields.items()})


@cache
def _dataclass_of(name: str, fields: tuple[str, ...]) -> Callable[..., object]:
    return make_dataclass(name, fields, frozen=True, slots=True)


# --- how ---


def _spend(rounds: int, works: Sequence[tuple[Work, ...]]) -> list[tuple[float, ...]]:
    """CPU seconds of each kind of work in each round; a first round does not count.

    A few documents are worked on by all of them in turn before the next ones are: the
    machine changes its speed, and what has read one document is to read the next, as
    it does at work, and not to find the caches full of what another one left.
    """
    spent = []
    for _ in range(rounds + 1):
        sums = [0.0] * len(works[0])
        for start in range(0, len(works), TURN):
            for kind, in_turn in enumerate(
                zip(*works[start : start + TURN], strict=True)
            ):
                begun = thread_time()
                for work in in_turn:
                    work()
                sums[kind] += thread_time() - begun
        spent.append(tuple(sums))
    return spent[1:]


def _finding(
    measure: str,
    floor: str,
    spent: Sequence[tuple[float, ...]],
    count: int,
    at_most: float | None,
) -> Finding:
    """CPU for one; the ratio is the median of the rounds' own."""
    ratio = median(ours / bare for ours, bare in spent)
    return Finding(
        bench="normalize",
        measure=f"CPU us per {measure} (floor: {floor})",
        hub=median(ours for ours, _ in spent) / count * 1e6,
        floor=median(bare for _, bare in spent) / count * 1e6,
        ratio=ratio,
        target="" if at_most is None else f"<= {at_most:g} x",
        met=at_most is None or ratio <= at_most,
    )


def _faster(
    measure: str,
    spent: Sequence[tuple[float, ...]],
    other: int,
    count: int,
    at_least: float,
) -> Finding:
    """How many times faster than another parser: here more is better."""
    ratio = median(each[other] / each[0] for each in spent)
    return Finding(
        bench="normalize",
        measure=f"times faster: {measure}",
        hub=median(each[0] for each in spent) / count * 1e6,
        floor=median(each[other] for each in spent) / count * 1e6,
        ratio=ratio,
        target=f">= {at_least:g} x",
        met=ratio >= at_least,
    )
