"""``fanfare tail``: print the new entries of topics as they come, over a websocket."""

from __future__ import annotations

import contextlib
import json
import random
import time
from typing import TYPE_CHECKING

import click

from hub.cli import examples, say
from hub.cli.hub_client import find_stream, url_option
from hub.cli.line_input import with_input
from hub.cli.receiver import describe
from hub.cli.wording import HubUnreachable, json_option, plural, printable
from hub.runtime.clock import SystemClock

if TYPE_CHECKING:
    from hub.cli.live_client import LiveClient, RecordsMissed
    from protocols.live.live_messages import NotificationMessage

FIRST_WAIT = 1.0
LONGEST_WAIT = 30.0


@click.command(
    epilog=examples(
        "fanfare tail https://example.org/feed.xml",
        "fanfare feeds list --category news --urls | fanfare tail -",
    )
)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--cursor", default="", help="Begin after this cursor.  [default: with new entries]"
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom"]),
    default="json",
    show_default=True,
    help="The format of messages; atom prints whole documents.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    help="End after this many messages.  [default: never]",
)
@json_option("Print one JSON object for each message, one a line.")
@url_option
def tail(
    topics: tuple[str, ...],
    cursor: str,
    format_: str,
    count: int | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Print the new entries of each TOPIC until Ctrl-C, each with its cursor.

    After a lost connection the command reconnects and prints what came meanwhile, or
    reports what is no longer available. Notes go to standard error. Public topics need
    no token. "-" reads topics from standard input.
    """
    from hub.cli.live_client import LiveClient

    topics = tuple(with_input(topics, "TOPIC"))
    if not all(topics) or not topics:
        raise click.UsageError("TOPIC: expected the URL of a feed, not an empty one")
    hub = find_stream(url)
    client = LiveClient(hub=hub, topics=topics, format=format_, cursor=cursor)
    with contextlib.suppress(KeyboardInterrupt):
        _Tail(client, count, as_json=as_json).follow()


class _Tail:
    """Prints the messages that a client gets, and connects again when it must."""

    def __init__(self, client: LiveClient, count: int | None, *, as_json: bool) -> None:
        self._client = client
        self._as_json = as_json
        self._left = count
        self._wait = FIRST_WAIT
        self._has_connected = False

    def follow(self) -> None:
        """Print the messages that are wanted, or all for ever. Raises `Failure`."""
        from hub.cli.live_client import ConnectionLost

        while self._left is None or self._left > 0:
            try:
                self._follow_once()
            except ConnectionLost as error:
                if not self._has_connected:
                    raise HubUnreachable(
                        f"no live stream at {self._client.hub.url} ({error})"
                    ) from error
                self._pause(str(error))

    def _follow_once(self) -> None:
        from hub.cli.live_client import (
            ConnectionLost,
            RecordsMissed,
            TopicEnded,
            TopicsConfirmed,
        )

        with self._client.connected() as connection:
            for event in self._client.events(connection):
                self._wait = FIRST_WAIT
                if isinstance(event, TopicsConfirmed):
                    self._greet()
                elif isinstance(event, RecordsMissed):
                    self._print_missed(event)
                elif isinstance(event, TopicEnded):
                    topic, reason = printable(event.topic), printable(event.reason)
                    say(f"ended: {topic}: {reason}", err=True)
                else:
                    self._print(event)
                if self._left == 0:
                    return
        raise ConnectionLost("closed by the hub")

    def _greet(self) -> None:
        client = self._client
        said = f"listening to {plural(len(client.topics), 'topic')} at {client.hub.url}"
        if self._has_connected:
            said = f"reconnected, resuming after {client.cursor}"
        say(said, err=True)
        self._has_connected = True

    def _pause(self, reason: str) -> None:
        wait = self._wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads returns
        say(
            f"connection lost ({printable(reason)}); next try in {wait:.1f} s", err=True
        )
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        time.sleep(wait)

    def _print(self, message: NotificationMessage) -> None:
        if self._left is not None:
            self._left -= 1
        if self._as_json:
            say(json.dumps(_document(message)))
            return
        if isinstance(message.body, str):
            say(message.body)
            return
        parts = [f"{SystemClock().now():%H:%M:%S}", message.cursor]
        if len(self._client.topics) > 1:
            parts.append(printable(message.topic))
        parts.append(describe(message.body, "application/json"))
        say("  ".join(parts))

    def _print_missed(self, missed: RecordsMissed) -> None:
        say(
            f"missed: records of {printable(missed.topic)} before {missed.cursor}"
            " are no longer kept",
            err=True,
        )


def _document(message: NotificationMessage) -> dict[str, object]:
    """Return a message for programs; ``body`` is an object if it is JSON."""
    body = message.body
    return {
        "topic": message.topic,
        "cursor": message.cursor,
        "prev": message.prev,
        "kind": message.kind,
        "body": body if isinstance(body, str) else json.loads(body),
    }
