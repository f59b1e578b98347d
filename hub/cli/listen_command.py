"""``fanfare listen``: a webhook receiver that subscribes itself and prints."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from hub.cli import say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.receiver import Receiver
from hub.cli.wording import Failure, printable


@click.command()
@click.argument("topic")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0 picks one.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom", "as-is"]),
    default="json",
    show_default=True,
)
@click.option("--once", is_flag=True, help="End after the first delivery.")
@click.option("--count", type=click.IntRange(1), help="End after so many deliveries.")
@speaks_to_hub
def listen(
    hub: Hub, topic: str, port: int, format_: str, once: bool, count: int | None
) -> None:
    """Subscribe to TOPIC and print each new entry until Ctrl-C.

    Listens on the loopback address, which the hub must be allowed to reach:
    FANFARE_ALLOW_CALLBACK_NETWORKS=127.0.0.0/8 (scripts/run does so). The signature
    of every delivery is checked, and the subscription ends with the command.
    """
    secret = secrets.token_hex(20)
    try:
        receiver = Receiver(port, secret)
    except OSError as error:
        raise Failure(f"cannot listen on 127.0.0.1 port {port}: {error}") from error
    with receiver, _sigterm_interrupts():
        subscription = _subscribe(hub, receiver.url, topic, secret, format_)
        try:
            _print_deliveries(receiver, 1 if once else count)
        except KeyboardInterrupt:
            say("unsubscribing")
        finally:
            if not receiver.ended:
                hub.delete(f"/api/subscriptions/{subscription['id']}?tell=false")
    if receiver.ended:
        raise Failure(f"the hub ended the subscription: {printable(receiver.ended)}")


def _subscribe(
    hub: Hub, callback: str, topic: str, secret: str, format_: str
) -> Document:
    body = {"callback": callback, "topic": topic, "secret": secret, "format": format_}
    found = hub.post("/api/subscriptions", body)
    say(f"listening at {callback} for {printable(found['topic'])}")
    trouble = found["feed_status"]["error"]
    if trouble:
        say(f"note: the feed is in trouble: {printable(trouble)}", err=True)
    return found


def _print_deliveries(receiver: Receiver, count: int | None) -> None:
    received = 0
    while not receiver.ended and (count is None or received < count):
        for line in receiver.receive():
            received += line.is_delivery
            say(line.text, err=not line.is_delivery)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Within the block SIGTERM is like Ctrl-C, so that it unsubscribes too."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
