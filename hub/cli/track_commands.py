"""``fanfare track``: queries that find entries in all feeds, tried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hub.cli import say
from hub.cli.wording import Failure, plural, printable
from protocols.protocol_errors import InvalidValue

if TYPE_CHECKING:
    from protocols.track import Query


@click.group()
def track() -> None:
    """Try track queries."""


@track.command("test")
@click.argument("query")
@click.option(
    "--in",
    "source",
    metavar="FILE|URL",
    help="A feed whose entries are held against it.",
)
def test(query: str, source: str | None) -> None:
    """Say how QUERY is understood, and which entries of a feed it matches.

    A URL that subscribes to a query (HUB/track?query=..., or one of Superfeedr's) is
    read as a subscription reads it. Exit code 1: the query cannot be read; what was
    expected is said, and where.
    """
    try:
        understood = _read_query(query)
    except InvalidValue as error:
        raise Failure(str(error)) from error
    say(f"understood as: {printable(str(understood))}")
    if source is not None:
        _print_matches(understood, source)


def _read_query(text: str) -> Query:
    """Of words, or of a topic of any hub. Raises `InvalidValue`."""
    from protocols.track import parse_query, read_track_topic
    from protocols.urls import is_web_url

    topic = None
    if is_web_url(text):
        hub_url = text.partition("?")[0].removesuffix("/track")
        topic = read_track_topic(text, hub_url)
    return parse_query(text) if topic is None else topic.query


def _print_matches(query: Query, source: str) -> None:
    from hub.cli.parsed_documents import read_document
    from protocols.track import subject_of

    document = read_document(source)
    feed = document.parsed
    if feed is None:
        raise Failure(f"{source}: {document.error}")
    matched = 0
    for entry in feed.entries:
        if query.matches(subject_of(entry, feed.feed, feed_url=source)):
            matched += 1
            say(printable(entry.title or entry.id))
    count = plural(len(feed.entries), "entry", "entries")
    say(f"{matched} of {count} matched", err=True)
