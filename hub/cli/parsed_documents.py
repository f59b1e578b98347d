"""What ``fanfare parse`` and ``track test`` read: a document, parsed and rendered.

The module is slow to import; commands import it when they run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
import orjson

from hub import PRODUCT
from hub.cli import say
from hub.cli.hub_client import Document, read_settings
from hub.cli.line_input import STANDARD_INPUT
from hub.cli.wording import Failure, plural, print_facts, print_table, printable
from hub.core.fetched import Fetched
from hub.http import HttpNetwork, ResponseLimits
from hub.ingest.document_parser import WorkerParser
from hub.ingest.fetcher import Fetcher, FetchRequest
from hub.runtime.clock import SystemClock
from hub.settings import PREFIX
from protocols.feeds import ParseContext
from protocols.feeds.parse_explanation import (
    EncodingExplanation,
    ParseExplanation,
    explain,
    explain_encoding,
)
from protocols.model import Notification, ParsedFeed, Status
from protocols.protocol_errors import FeedError
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json


class ParseFailed(Exception):
    """The document could not be fetched, or is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSource:
    """A document, and the feed that was parsed from it, or the ``error``."""

    body: bytes
    content_type: str
    parsed: ParsedFeed | None
    error: str = ""


def read_document(source: str) -> ParsedSource:
    """Like `parse_source`, for a command. Raises `Failure` with the reason in words."""
    try:
        return asyncio.run(parse_source(source))
    except ParseFailed as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot read {Path(source)}: {error.strerror}") from error


async def parse_source(source: str) -> ParsedSource:
    """Read and parse a file, standard input ("-"), or a URL under the address guard.

    Raises `ParseFailed` for what could not be fetched or is too large, and `OSError`
    for a file that cannot be read.
    """
    clock = SystemClock()
    if source.lower().startswith(("http://", "https://")):
        fetched = await _fetch(source, clock)
        url, body, kind = fetched.url, fetched.body, fetched.content_type
    else:
        url, body = await asyncio.to_thread(_read, source)
        kind = ""
    context = ParseContext(url=url, content_type=kind, now=clock.now())
    parsed, why = None, ""
    try:
        async with WorkerParser() as parser:
            parsed = await parser.parse(body, context)
    except FeedError as error:
        why = str(error)
    return ParsedSource(body=body, content_type=kind, parsed=parsed, error=why)


def _read(name: str) -> tuple[str, bytes]:
    """Return the URL and bytes of a file, or of standard input, whose URL is "".

    Raises `ParseFailed` if it is larger than a hub would take, and `OSError`.
    """
    largest = ResponseLimits().body_bytes
    with click.open_file(name, "rb") as file:
        body = file.read(largest + 1)
    if len(body) > largest:
        raise ParseFailed(f"{name}: the document is larger than {largest} bytes")
    url = "" if name == STANDARD_INPUT else Path(name).absolute().as_uri()
    return url, body


async def _fetch(url: str, clock: SystemClock) -> Fetched:
    settings = read_settings()
    request = FetchRequest(
        url=url,
        user_agent=f"{PRODUCT} (+{settings.contact})" if settings.contact else PRODUCT,
    )
    async with HttpNetwork(allow_topics=settings.topic_networks) as network:
        fetched = await Fetcher(network, clock, ResponseLimits()).fetch(request)
    if fetched.error:
        how = ""
        if fetched.error.startswith("blocked"):
            how = f"; {PREFIX}ALLOW_TOPIC_NETWORKS can allow its network"
        raise ParseFailed(f"{url}: {fetched.error}{how}")
    return fetched


def render(parsed: ParsedFeed, topic: str, format: str) -> str:
    """Render a notification as subscribers get it, with JSON indented for reading."""
    notification = Notification(
        topic=topic,
        hub="",
        status=Status(title=parsed.feed.title),
        feed=parsed.feed,
        entries=parsed.entries,
        deletions=parsed.deletions,
    )
    if format == "atom":
        return render_atom(notification).decode()
    document = orjson.loads(render_json(notification))
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def print_explanation(document: ParsedSource, *, as_json: bool) -> None:
    """Print how a document was read; if it is no feed, only its encoding."""
    body, content_type = document.body, document.content_type
    if document.parsed is None:
        encoding = explain_encoding(body, content_type)
        if as_json:
            _print_json({"error": document.error, "encoding": encoding})
        else:
            print_facts(_encoding(encoding))
        return
    explanation = explain(body, content_type, document.parsed)
    if as_json:
        _print_json(explanation)
    else:
        _print(explanation)


def print_explained(document: Document) -> None:
    """Print how the hub read a document: an answer of ``POST
    /api/feeds/{id}/parse``."""
    status, type = document["status"], document["content_type"]
    print_facts(
        [
            ("from", document["fetched_url"]),
            ("answer", f"{status}, {type}" if status else "none"),
            ("error", document["error"]),
        ]
    )
    if document["explanation"] is not None:
        known = {"key": ""}  # the hub does not tell its keys
        made = document["explanation"]
        made["entries"] = [{**known, **each} for each in made["entries"]]
        made["encoding"] = document["encoding"]
        _print(msgspec.convert(made, ParseExplanation))
    elif document["encoding"] is not None:
        encoding = msgspec.convert(document["encoding"], EncodingExplanation)
        print_facts(_encoding(encoding))


def _print_json(value: object) -> None:
    say(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def _print(explanation: ParseExplanation) -> None:
    left_out = explanation.left_out
    print_facts(
        [
            ("format", explanation.format),
            ("read by", explanation.path),
            *_encoding(explanation.encoding),
            ("entries", len(explanation.entries)),
            ("left out", plural(left_out, "entry", "entries") if left_out else ""),
        ]
    )
    for name, lines in (
        ("NOTES", explanation.problems),
        ("DROPPED", explanation.dropped),
    ):
        if lines:
            say(f"\n{name}")
        for line in lines:
            say(f"  {printable(line)}")
    if explanation.entries:
        say()
        print_table(
            ("KNOWN BY", "ID", "TITLE", "WHY"),
            [
                (each.rule, each.id[:60], each.title[:40], each.why)
                for each in explanation.entries
            ],
        )


def _encoding(encoding: EncodingExplanation) -> list[tuple[str, object]]:
    return [
        ("encoding", f"{encoding.name}, by {encoding.source}"),
        ("declared", "; ".join(encoding.claims)),
        ("encoding error", encoding.problem),
    ]
