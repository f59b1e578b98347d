"""``fanfare track``: try out queries that find entries in all feeds, and search by
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import (
    Failure,
    json_option,
    plural,
    print_table,
    printable,
    say_json,
)
from protocols.protocol_errors import InvalidValue

if TYPE_CHECKING:
    from protocols.track import Query


@click.group(cls=VerbGroup)
def track() -> None:
    """Try out track queries, and search by them."""


@track.command(
    "test",
    epilog=examples(
        "fanfare track test 'laurel + hardy -site:example.com' --in feed.xml"
    ),
)
@click.argument("query")
@click.option(
    "--in",
    "source",
    metavar="FILE|URL|-",
    help="A feed whose entries are matched against the query.",
)
@json_option()
def test(query: str, source: str | None, as_json: bool) -> None:
    """Show how QUERY is understood, and which entries of a feed it matches.

    QUERY may be the URL of a track topic (HUB/track?query=..., or one of Superfeedr's).
    Exit code 1 if the query is invalid; the message says where, and what was expected.
    """
    try:
        understood = _read_query(query)
    except InvalidValue as error:
        raise Failure(str(error)) from error
    if as_json:
        entries = None if source is None else [*_matches(understood, source)]
        say_json({"query": str(understood), "entries": entries})
        return
    say(f"understood as: {printable(str(understood))}")
    if source is not None:
        _print_matches(understood, source)


@track.command(
    "search",
    epilog=examples(
        "fanfare track search 'laurel + hardy -site:example.com'",
        "fanfare track search laurel --limit 200",
    ),
)
@click.argument("query")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="The most to list.",
)
@click.option("--cursor", type=click.IntRange(1), help="Go on from there.")
@json_option()
@speaks_to_hub
def search(hub: Hub, query: str, limit: int, cursor: int | None, as_json: bool) -> None:
    """List the stored entries that QUERY matches, the newest first.

    Only feeds that the token may read are searched. The last line says how far was
    looked, and how to go on from there.
    """
    found: list[Document] = []
    pages: list[Document] = []
    while True:
        page = hub.get(
            "/api/search",
            query=query,
            limit=min(limit - len(found), 100),
            cursor=cursor,
        )
        pages.append(page)
        found += page["entries"]
        is_stuck = page["next"] == cursor
        cursor = page["next"]
        if cursor is None or len(found) >= limit or is_stuck:
            break
    if as_json:
        looked_at = sum(each["looked_at"] for each in pages)
        reached = [each["reached"] for each in pages if each["reached"]]
        whole = {"looked_at": looked_at, "reached": reached[-1] if reached else None}
        say_json({**page, **whole, "entries": found, "said": _said(pages, len(found))})
        return
    if found:
        print_table(
            ("ID", "PUBLISHED", "FEED", "TITLE", "URL"), [_found(it) for it in found]
        )
    more = f"; older ones: --cursor {cursor}" if cursor else ""
    say(f"{_said(pages, len(found))}{more}", err=True)


def _found(entry: Document) -> tuple[str, ...]:
    at = entry["published"] or entry["updated"]
    return (
        str(entry["id"]),
        f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S}Z" if at else "no date",
        entry["feed_title"] or entry["feed_url"],
        entry["title"] or "(untitled)",
        entry["url"],
    )


def _said(pages: Sequence[Document], count: int) -> str:
    """How many were found, and how far was looked, in words."""
    last: str = pages[-1]["said"]
    if len(pages) == 1:
        return last
    entries = plural(count, "entry", "entries")
    return f"{entries} in {len(pages)} pages, of which the last: {last}"


def _read_query(text: str) -> Query:
    """Return the query of words, or of any hub's track topic. Raises `InvalidValue`."""
    from protocols.track import parse_query, read_track_topic
    from protocols.urls import is_web_url

    topic = None
    if is_web_url(text):
        hub_url = text.partition("?")[0].removesuffix("/track")
        topic = read_track_topic(text, hub_url)
    return parse_query(text) if topic is None else topic.query


def _print_matches(query: Query, source: str) -> None:
    entries = [*_matches(query, source)]
    matched = [each for each in entries if each["matches"]]
    for each in matched:
        say(printable(str(each["title"] or each["id"])))
    count = plural(len(entries), "entry", "entries")
    say(f"{len(matched)} of {count} matched", err=True)


def _matches(query: Query, source: str) -> Iterator[dict[str, object]]:
    """Yield what each entry of a feed is, and whether it matches. Raises `Failure`."""
    from hub.cli.parsed_documents import read_document
    from protocols.track import subject_of

    document = read_document(source)
    feed = document.parsed
    if feed is None:
        raise Failure(f"{source}: {document.error}")
    for entry in feed.entries:
        matches = query.matches(subject_of(entry, feed.feed, feed_url=source))
        yield {"id": entry.id, "title": entry.title, "matches": matches}
