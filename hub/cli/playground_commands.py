"""``fanfare playground``: the steps of WebSub, with both messages of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import click

from hub.cli import Colour, VerbGroup, examples, say, say_coloured
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.secret_options import secret_option
from hub.cli.wording import Failure, json_option, moment, plural, printable, say_json

STEPS: Final = ("discover", "subscribe", "unsubscribe", "publish", "all")
KINDS: Final = (*STEPS[:4], "verify", "fetch", "notify")
CHALLENGES: Final = ("confirm", "confirm-all", "wrong-challenge", "not-found", "slow")
DELIVERIES: Final = ("accept", "error", "gone", "redirect", "slow")
_MARKS: Final = {
    "good": ("right", Colour.GOOD),
    "note": ("note", Colour.DOUBTFUL),
    "bad": ("wrong", Colour.BAD),
}

messages_option = click.option(
    "--messages", "with_messages", is_flag=True, help="Print both messages in full."
)


@click.group(cls=VerbGroup)
def playground() -> None:
    """Debug publishers, hubs and subscribers of WebSub."""


@playground.command(
    "try",
    epilog=examples(
        "fanfare playground try",
        "fanfare playground try https://example.org/feed.xml --messages",
    ),
)
@click.argument("topic", default="")
@click.option("--hub", "named", default="", help="The hub that its own topic names.")
@messages_option
@json_option()
@speaks_to_hub
def try_topic(
    hub: Hub, topic: str, named: str, with_messages: bool, as_json: bool
) -> None:
    """Start a run, make all its steps, and say what is right and wrong.

    Without TOPIC, with a topic of the playground and this hub between it and the
    playground's callback. Exit code 1 if something is wrong.
    """
    run = hub.post("/api/playground", {"topic": topic, "hub": named})
    report = hub.post(_path(run["id"], "/steps"), {"step": "all"})
    _say_report(report, with_messages=with_messages, as_json=as_json)
    _fail_if_wrong(report)


@playground.command(
    epilog=examples("fanfare playground start https://example.org/feed.xml")
)
@click.argument("topic", default="")
@click.option("--hub", "named", default="", help="The hub that its own topic names.")
@json_option()
@speaks_to_hub
def start(hub: Hub, topic: str, named: str, as_json: bool) -> None:
    """Start a run: a topic and a callback to be given to other programs."""
    run = hub.post("/api/playground", {"topic": topic, "hub": named})
    if as_json:
        say_json(run)
    else:
        _say_run(run)


@playground.command(name="list")
@json_option()
@speaks_to_hub
def list_runs(hub: Hub, as_json: bool) -> None:
    """List the runs, the last used first."""
    found = hub.get("/api/playground")
    if as_json:
        say_json(found)
        return
    for each in found["runs"]:
        say(f"{each['id']}  {printable(each['topic'])}")
        count = plural(each["last"], "message")
        say(f"  {count}, kept until {moment(each['expires_at'])}")
    if not found["runs"]:
        say("no runs; start one with `fanfare playground try`", err=True)


@playground.command()
@click.argument("id")
@click.option("--after", type=click.IntRange(0), default=0, help="Only later messages.")
@messages_option
@json_option()
@speaks_to_hub
def show(hub: Hub, id: str, after: int, with_messages: bool, as_json: bool) -> None:
    """Show a run with its messages."""
    report = hub.get(_path(id), after=after)
    _say_report(report, with_messages=with_messages, as_json=as_json)


@playground.command(epilog=examples("fanfare playground step ID publish --title News"))
@click.argument("id")
@click.argument("step", type=click.Choice(STEPS))
@click.option("--title", default="", help="Of the entry that is published.")
@click.option("--text", default="", help="Of the entry that is published.")
@messages_option
@json_option()
@speaks_to_hub
def step(
    hub: Hub,
    id: str,
    step: str,
    title: str,
    text: str,
    with_messages: bool,
    as_json: bool,
) -> None:
    """Make a step of a run, and show what came of it.

    An entry is published if the topic is the run's own. Exit code 1 if something is
    wrong.
    """
    body = {"step": step, "title": title, "text": text}
    report = hub.post(_path(id, "/steps"), body)
    _say_report(report, with_messages=with_messages, as_json=as_json)
    _fail_if_wrong(report)


@playground.command(
    epilog=examples(
        "fanfare playground send ID --again 2",
        "fanfare playground send ID --again 7 --body changed --sign",
    )
)
@click.argument("id")
@click.option(
    "--again", type=click.IntRange(1), help="The number of a message to begin with."
)
@click.option("--step", type=click.Choice(KINDS), help="What the request is about.")
@click.option("--method", help="GET, HEAD or POST.")
@click.option("--to", help="The URL.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Instead of all headers; may be repeated.",
)
@click.option("--body", help="Of a form one parameter a line, not encoded.")
@click.option("--sign", is_flag=True, help="Sign the body with the callback's secret.")
@messages_option
@json_option()
@speaks_to_hub
def send(
    hub: Hub,
    id: str,
    again: int | None,
    step: str | None,
    method: str | None,
    to: str | None,
    headers: tuple[str, ...],
    body: str | None,
    sign: bool,
    with_messages: bool,
    as_json: bool,
) -> None:
    """Send a message again, changed or as it was, or one of your own.

    Exit code 1 if something is wrong.
    """
    wanted: dict[str, Any] = {"again": again, "sign": sign, "body": body}
    wanted |= {"step": step or "", "method": method or "", "url": to or ""}
    wanted["headers"] = "\n".join(headers) if headers else None
    report = hub.post(_path(id, "/messages"), wanted)
    _say_report(report, with_messages=with_messages, as_json=as_json)
    _fail_if_wrong(report)


@playground.command(
    epilog=examples("fanfare playground answer ID --challenge not-found")
)
@click.argument("id")
@click.option(
    "--challenge", type=click.Choice(CHALLENGES), help="How it answers a challenge."
)
@click.option(
    "--delivery", type=click.Choice(DELIVERIES), help="How it answers a notification."
)
@secret_option("secret", "What notifications are signed with.")
@json_option()
@speaks_to_hub
def answer(
    hub: Hub,
    id: str,
    challenge: str | None,
    delivery: str | None,
    secret: str,
    as_json: bool,
) -> None:
    """Say how the callback of a run answers."""
    wanted = {"challenge": challenge, "delivery": delivery, "secret": secret or None}
    run = hub.patch(_path(id), wanted)
    if as_json:
        say_json(run)
    else:
        say(f"to a challenge: {run['challenge']}; to a notification: {run['delivery']}")


@playground.command()
@click.argument("id")
@json_option()
@speaks_to_hub
def remove(hub: Hub, id: str, as_json: bool) -> None:
    """Forget a run; its topic and its callback are gone."""
    run = hub.delete(_path(id))
    if as_json:
        say_json(run)
    else:
        say(f"forgotten  {printable(run['topic'])}")


def _path(id: str, below: str = "") -> str:
    return f"/api/playground/{quote(id, safe='')}{below}"


def _say_report(report: Document, *, with_messages: bool, as_json: bool) -> None:
    if as_json:
        say_json(report)
        return
    for each in report["exchanges"]:
        _say_exchange(each, with_messages=with_messages)
    _say_run(report["run"])


def _say_run(run: Document) -> None:
    say(f"topic     {printable(run['topic'])}")
    if run["topic"] != run["own_topic"]:
        say(f"own topic {printable(run['own_topic'])}")
    say(f"hub       {printable(run['hub']) or 'none is discovered'}")
    say(f"callback  {printable(run['callback'])}")
    if run["self_unreachable"]:
        reason = printable(run["self_unreachable"])
        say(f"note: the hub does not reach itself: {reason}", err=True)
    say(f"page      {printable(run['page'])}")


def _say_exchange(each: Document, *, with_messages: bool) -> None:
    status = each["error"] or each["status"]
    say(f"{each['number']}. {each['step']}  {printable(each['url'])}")
    say(f"  {printable(str(status))} after {each['milliseconds']} ms")
    for remark in each["remarks"]:
        word, colour = _MARKS[remark["level"]]
        section = f" (WebSub {remark['section']})" if remark["section"] else ""
        say_coloured(
            [
                ("  ", None),
                (word, colour),
                (f"  {printable(remark['text'])}{section}", None),
            ]
        )
    if with_messages:
        _say_message(">", each["request"])
        if each["response"]:
            _say_message("<", each["response"])


def _say_message(mark: str, message: Document) -> None:
    lines = [message["line"]]
    lines += [": ".join(each) for each in message["headers"]]
    lines += ["", *message["body"].splitlines()]
    for line in lines:
        say(f"  {mark} {printable(line)}".rstrip())


def _fail_if_wrong(report: Document) -> None:
    exchanges: Sequence[Document] = report["exchanges"]
    wrong = [
        each["number"]
        for each in exchanges
        if each["error"] or any(it["level"] == "bad" for it in each["remarks"])
    ]
    if wrong:
        raise Failure(f"something is wrong with message {', '.join(map(str, wrong))}")
