"""``fanfare listen``: a webhook receiver that subscribes itself and prints."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from types import FrameType

import click

from hub.cli import examples, say, say_in_place
from hub.cli.feed_watch import FeedWatch, found, how_to_poll, next_poll
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.receiver import Receiver
from hub.cli.wording import Failure, json_option, printable
from hub.runtime.clock import SystemClock


@click.command(
    epilog=examples(
        "fanfare listen --sample https://example.org/feed.xml",
        "fanfare listen --once --json https://example.org/feed.xml",
    )
)
@click.argument("topic")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="The port to listen on.  [default: a free one]",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom", "as-is"]),
    default="json",
    show_default=True,
    help="The format of deliveries; as-is: the topic's own document.",
)
@click.option("--once", is_flag=True, help="End after the first delivery.")
@click.option(
    "--count",
    type=click.IntRange(1),
    help="End after this many deliveries.  [default: never]",
)
@click.option(
    "--sample", is_flag=True, help="Begin with a test delivery; it counts as one."
)
@json_option("Print one JSON object for each delivery, one a line.")
@speaks_to_hub
def listen(
    hub: Hub,
    topic: str,
    port: int,
    format_: str,
    once: bool,
    count: int | None,
    sample: bool,
    as_json: bool,
) -> None:
    """Subscribe to TOPIC and print each new entry until Ctrl-C.

    With --sample the hub first sends the newest entry, marked as a test, to show what
    new entries will look like.

    The command listens on the loopback address, which the hub must be allowed to reach:
    FANFARE_ALLOW_CALLBACK_NETWORKS=127.0.0.0/8 (scripts/run sets it). It checks the
    signature of every delivery and unsubscribes when it ends. Standard error shows when
    the feed is polled next, and what each poll finds.
    """
    secret = secrets.token_hex(20)
    try:
        receiver = Receiver(port, secret)
    except OSError as error:
        raise Failure(f"cannot listen on 127.0.0.1 port {port}: {error}") from error
    with receiver, _sigterm_interrupts():
        body = {"callback": receiver.url, "topic": topic, "secret": secret}
        subscription = hub.post("/api/subscriptions", {**body, "format": format_})
        _greet(subscription, beside=as_json)
        trial = _send_sample(hub, subscription) if sample else None
        try:
            watch = FeedWatch(hub, subscription["feed_status"], SystemClock())
            most = 1 if once else count
            _print_deliveries(receiver, watch, most, trial, as_json=as_json)
        except KeyboardInterrupt:
            say_in_place("")
            say("unsubscribing", err=as_json)
        finally:
            if not receiver.ended:
                hub.delete(f"/api/subscriptions/{subscription['id']}?tell=false")
    if receiver.ended:
        raise Failure(f"the hub ended the subscription: {printable(receiver.ended)}")


def _greet(subscription: Document, *, beside: bool) -> None:
    callback, topic = subscription["callback"], printable(subscription["topic"])
    say(f"listening at {callback} for {topic}", err=beside)
    feed = subscription["feed_status"]
    if feed["error"]:
        say(f"note: the feed is failing: {printable(feed['error'])}", err=True)
    elif feed["state"] != "track":
        say(f"  {found(feed)}", err=True)
    for line in filter(None, (next_poll(feed), how_to_poll(feed))):
        say(f"  {line}", err=True)


def _send_sample(hub: Hub, subscription: Document) -> Future[Document]:
    """Have a test delivery sent; a thread asks for it, because this one receives it."""
    trial: Future[Document] = Future()

    def send() -> None:
        try:
            trial.set_result(hub.post(f"/api/subscriptions/{subscription['id']}/test"))
        except Exception as error:
            trial.set_exception(error)

    Thread(target=send, daemon=True).start()
    return trial


def _check(trial: Future[Document]) -> None:
    """Raise `Failure` if the test delivery failed: no other would arrive either."""
    found = trial.result()
    if not found["delivered"]:
        raise Failure(f"the test delivery failed: {found['error']}")


def _print_deliveries(
    receiver: Receiver,
    watch: FeedWatch,
    count: int | None,
    trial: Future[Document] | None,
    *,
    as_json: bool,
) -> None:
    received = 0
    while not receiver.ended and (count is None or received < count):
        for line in receiver.receive():
            received += line.is_delivery
            say_in_place("")
            if as_json and line.is_delivery:
                say(json.dumps(line.document))
            else:
                say(line.text, err=not line.is_delivery)
        if trial is not None and trial.done():
            _check(trial)
            trial = None
        if event := watch.look():
            say_in_place("")
            say(f"{SystemClock().now():%H:%M:%S}  {event}", err=True)
        say_in_place(watch.countdown())
    say_in_place("")


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Within the block SIGTERM acts like Ctrl-C: the command unsubscribes for both."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
