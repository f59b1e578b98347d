"""``fanfare track``: try out queries that find entries in all feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.wording import Failure, json_option, plural, printable, say_json
from protocols.protocol_errors import InvalidValue

if TYPE_CHECKING:
    from protocols.track import Query


@click.group(cls=VerbGroup)
def track() -> None:
    """Try out track queries."""


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
