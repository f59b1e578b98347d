"""``fanfare subs``: subscriptions, and the import of those of another hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

import click
from msgspec import Struct
from msgspec.structs import asdict

from hub.cli import VerbGroup, examples, say
from hub.cli.delivery_facts import (
    lost_entries_of,
    print_attempts,
    print_trial,
    told_facts,
)
from hub.cli.feed_watch import how_to_poll, next_poll
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.line_input import with_input, with_scheme
from hub.cli.plan_commands import EACH_OR_PLAN, is_by_filter
from hub.cli.progress import Progress
from hub.cli.repeated_verbs import Verb, repeat_verb
from hub.cli.secret_options import secret_option
from hub.cli.selection_options import (
    account_option,
    health_cells,
    limit_option,
    plan_options,
    selection,
    sort_option,
    subscription_selection,
)
from hub.cli.wording import (
    Failure,
    HubUnreachable,
    cut,
    health_of,
    json_option,
    moment,
    plural,
    print_facts,
    print_table,
    printable,
    say_json,
)
from hub.core.durations import duration
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.subscription_lists import (
    WrittenSubscription,
    read_subscriptions,
)
from protocols.websub.callbacks import read_callback, read_web_url
from protocols.websub.signatures import OF_OLD, SIGNINGS

OVER_LEFT_OUT = "those that are over are listed by `fanfare subs list --state over`"


@click.group(cls=VerbGroup, name="subs")
def subscriptions() -> None:
    """Add, list, show, test, edit, pause, import and remove subscriptions."""


FORMATS = ("json", "atom", "as-is", "by-topic")
_FORMAT_HELP = (
    "The format of deliveries. as-is: the topic's own document; by-topic: Atom for a"
    " feed, as-is for anything else."
)


@subscriptions.command(
    epilog=examples(
        "fanfare subs add https://you.example/hook https://example.org/feed.xml",
        "fanfare subs add --secret-file secret.txt --format atom CALLBACK TOPIC",
    )
)
@click.argument("callback")
@click.argument("topic")
@secret_option(
    "secret",
    "The secret that signs every delivery. Without it, a subscription that exists keeps"
    " its own.",
    default=None,
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="json",
    show_default=True,
    help=_FORMAT_HELP,
)
@click.option("--updates", is_flag=True, help="Also deliver updates and deletions.")
@click.option("--batch", is_flag=True, help="Allow several records in one request.")
@json_option()
@speaks_to_hub
def add(
    hub: Hub,
    callback: str,
    topic: str,
    secret: str | None,
    format_: str,
    updates: bool,
    batch: bool,
    as_json: bool,
) -> None:
    """Subscribe CALLBACK to the new entries of TOPIC.

    A topic that the hub does not know yet becomes a private feed.
    """
    body: Document = {
        "callback": callback,
        "topic": topic,
        **({} if secret is None else {"secret": secret}),
        "format": format_,
        "updates": "all" if updates else "fresh",
        "batch": batch,
    }
    found = hub.post("/api/subscriptions", body)
    if as_json:
        say_json(found)
        return
    done = "subscribed" if found["added"] else "subscribed already, and updated"
    say(
        f"{done}  {printable(found['callback'])}  (subscription {found['id']})\n"
        f"  to {printable(found['topic'])}"
    )
    if found["health"]["state"] == "paused":
        say(f"  paused: nothing is sent until `fanfare subs resume {found['id']}`")
    feed = found["feed_status"]
    if feed["error"]:
        say(f"  note: the feed is failing: {printable(feed['error'])}", err=True)
    for line in filter(None, (next_poll(feed), how_to_poll(feed))):
        say(f"  {line}")


@subscriptions.command(
    name="list",
    epilog=examples(
        "fanfare subs list --failing --sort since",
        "fanfare subs list --topic https://example.org/feed.xml --json",
    ),
)
@subscription_selection
@account_option
@sort_option("id", "since")
@limit_option
@json_option("Print one JSON array.")
@speaks_to_hub
def list_subscriptions(
    hub: Hub, /, limit: int | None, sort: str | None, as_json: bool, **given: object
) -> None:
    """List subscriptions with their state and since when they are in it.

    The state is ok, failing (the callback did not answer with a 2xx, and is retried or
    was given up), slow (behind without a failure), paused, or, after its end, gone (the
    callback answered 410) or ended. Those that are over are kept for 30 days, and
    listed only by --state.
    """
    wanted = selection(**given)
    every = hub.each("/api/subscriptions", "subscriptions", sort=sort, **wanted)
    found = list(islice(every, limit))
    if as_json:
        say_json(found)
    elif found:
        _print_subscriptions(found)
    elif wanted.get("state") or wanted.get("failing"):
        say("no subscriptions match")
    elif wanted:
        say(f"no subscriptions match; {OVER_LEFT_OUT}")
    else:
        say("no subscriptions; add one with `fanfare subs add CALLBACK TOPIC`")
        say(OVER_LEFT_OUT)


def _print_subscriptions(subscriptions: Sequence[Document]) -> None:
    rows = [
        (
            each["id"],
            *health_cells(each),
            each["format"],
            cut(_why(each["health"]), 40),
            each["callback"],
            each["topic"],
        )
        for each in subscriptions
    ]
    headings = ("ID", "STATE", "SINCE", "FORMAT", "WHY", "CALLBACK", "TOPIC")
    print_table(headings, rows)


def _why(health: Document) -> str:
    taken = health["last_milliseconds"]
    if health["reason"] or taken is None:
        return str(health["reason"])
    return f"its last request took {duration(taken / 1_000)}"


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def show(hub: Hub, subscription: int, as_json: bool) -> None:
    """Show how a subscription is, what is done about it, and its last attempts."""
    found = hub.get(f"/api/subscriptions/{subscription}")
    if as_json:
        say_json(found)
        return
    print_facts(
        [
            ("subscription", found["id"]),
            ("callback", found["callback"]),
            ("topic", found["topic"]),
            ("state", health_of(found)),
            ("delivery", found["explanation"]),
            ("lag", _lag(found["lag"])),
            *(("given up", _given_up(each)) for each in found["dead_letters"]),
            ("format", "" if found["events"] else found["format"]),
            ("updates", "" if found["events"] else found["updates"]),
            ("signed", _signing(found)),
            ("former secret", _former_secret(found)),
            ("subscribed", moment(found["created_at"])),
            ("lease", moment(found["lease_end"]) if found["lease_end"] else ""),
        ]
    )
    for each in found["advice"]:
        say(f"to {printable(each)}")
    print_attempts(found["attempts"])


@subscriptions.command(
    epilog=examples(
        "fanfare subs attempts 1 --failed",
        "fanfare subs attempts 1 --since 2026-11-21T14:00Z --until 2026-11-21T14:10Z",
    )
)
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@click.option(
    "--delivered", "outcome", flag_value="delivered", help="Only those with a 2xx."
)
@click.option("--failed", "outcome", flag_value="failed", help="Only failures.")
@click.option("--since", metavar="AGE|TIME", help="Only those from then on.")
@click.option("--until", metavar="AGE|TIME", help="Only those before then.")
@click.option(
    "--record",
    type=click.IntRange(1),
    help="Only those whose last record is this one; names its entries, too.",
)
@limit_option
@json_option("Print one JSON array; with --record an object that has `told`, too.")
@speaks_to_hub
def attempts(
    hub: Hub,
    subscription: int,
    outcome: str | None,
    since: str | None,
    until: str | None,
    record: int | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the requests to a callback, newest first, and what each told of."""
    path = f"/api/subscriptions/{subscription}/attempts"
    given = {"outcome": outcome, "since": since, "until": until, "record": record}
    pages = hub.pages(path, by="before", **given)
    page = next(pages)
    every = chain.from_iterable(each["attempts"] for each in chain([page], pages))
    found = list(islice(every, limit))
    told = {name: page.get(name) for name in ("told", "told_total")}
    if as_json:
        say_json(found if record is None else {"attempts": found, **told})
        return
    if record is not None:
        print_facts(told_facts(told))
    if not found:
        say("no attempts")
        if kept_from := page["kept_from"]:
            say(f"no failures or catch-ups from before {moment(kept_from)} are kept")
        return
    rows = [
        (
            moment(each["at"]),
            each["position"],
            each["status"] or "-",
            each["milliseconds"],
            each["error"] or _titles_of(each),
        )
        for each in found
    ]
    print_table(("TIME", "RECORD", "STATUS", "MS", "ERROR OR ENTRY"), rows)


def _titles_of(attempt: Document) -> str:
    more = attempt["entries"] - 1
    return f"{attempt['title']} and {more} more" if more > 0 else attempt["title"]


def _former_secret(found: Document) -> str:
    until = found["former_secret_until"]
    return f"signs as well until {moment(until)}" if until else ""


def _lag(lag: Document) -> str:
    """Return how far behind it is: ``4 records, the oldest found 5 min ago``."""
    if not lag["records"]:
        return "none"
    more = "at least " if lag["has_more"] else ""
    records = plural(lag["records"], "record")
    return f"{more}{records}, the oldest found {duration(lag['seconds'])} ago"


def _given_up(dead: Document) -> str:
    first, last = dead["first"], dead["last"]
    records = f"record {first}" if first == last else f"records {first} to {last}"
    at = moment(dead["at"])
    what = lost_entries_of(dead)
    of = f"; {what}" if what else ""
    return f"{records}, {at}: {dead['reason']}{of} (dead letter {dead['id']})"


def _signing(found: Document) -> str:
    if not found["has_secret"]:
        return "no secret"
    if found["algorithm"] == OF_OLD:
        return "sha1 for older clients; sha256 in X-Hub-Signature-256"
    return str(found["algorithm"])


@subscriptions.command(
    name="test",
    epilog=examples(
        "fanfare subs test 1",
        "fanfare subs test --callback https://you.example/hook --topic URL",
    ),
)
@click.argument("subscription", type=click.IntRange(1), metavar="[ID]", required=False)
@click.option("--callback", help="Any callback, without a subscription.")
@click.option("--topic", help="The topic of the notification, with --callback.")
@secret_option("secret", "The secret that signs the notification.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help=f"{_FORMAT_HELP}  [default: json]",
)
@json_option()
@speaks_to_hub
def send_test(
    hub: Hub,
    subscription: int | None,
    callback: str | None,
    topic: str | None,
    secret: str,
    format_: str | None,
    as_json: bool,
) -> None:
    """Send one notification now, marked as a test, and show the answer.

    It goes to the callback of subscription ID, or with --callback and --topic to any
    callback, without making a subscription. It has the newest entry of the topic. Exit
    code 1 if the callback does not accept it.
    """
    is_named = callback is not None and topic is not None
    if (subscription is None) is not is_named or (subscription and (secret or format_)):
        raise click.UsageError("give either ID, or --callback and --topic")
    if subscription is not None:
        found = hub.post(f"/api/subscriptions/{subscription}/test")
    else:
        given = {"callback": callback, "topic": topic, "secret": secret}
        found = hub.post("/api/deliveries/test", {**given, "format": format_ or "json"})
    if as_json:
        say_json(found)
    else:
        print_trial(found)
    if not found["delivered"]:
        raise Failure(f"the callback did not accept it: {found['error']}")


@subscriptions.command(
    epilog=examples(
        "fanfare subs edit 1 --format atom --no-updates",
        "fanfare subs edit 1 --secret-file secret.txt",
    )
)
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@secret_option(
    "secret", 'The secret that signs every delivery; "" for none.', default=None
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help=_FORMAT_HELP,
)
@click.option(
    "--updates/--no-updates",
    default=None,
    help="Deliver updates and deletions, or not.",
)
@click.option(
    "--batch/--no-batch",
    default=None,
    help="Allow several records in one request, or not.",
)
@json_option()
@speaks_to_hub
def edit(
    hub: Hub,
    subscription: int,
    secret: str | None,
    format_: str | None,
    updates: bool | None,
    batch: bool | None,
    as_json: bool,
) -> None:
    """Change a subscription without losing its place in the log."""
    wanted: Document = {
        "secret": secret,
        "format": format_,
        "updates": None if updates is None else "all" if updates else "fresh",
        "batch": batch,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise click.UsageError("name a change, such as --format or --secret-file")
    found = hub.patch(f"/api/subscriptions/{subscription}", body)
    if as_json:
        say_json(found)
        return
    say(f"edited  {printable(found['callback'])}  (subscription {found['id']})")
    say(f"  {found['format']}, {found['updates']} updates, {_signing(found)}")


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def request(hub: Hub, subscription: int, as_json: bool) -> None:
    """Print the request of a test delivery as curl, without sending it.

    It is signed now: receivers take it for five minutes.
    """
    found = hub.get(f"/api/subscriptions/{subscription}/request")
    if as_json:
        say_json(found)
        return
    say(found["curl"])


@subscriptions.command(
    epilog=examples(
        "fanfare subs replay 1 --since 2h",
        "fanfare subs replay 1 --record 4711",
    )
)
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@click.option("--since", metavar="AGE|TIME", help="What was found from then on.")
@click.option("--record", type=click.IntRange(1), help="This record and later ones.")
@json_option()
@speaks_to_hub
def replay(
    hub: Hub, subscription: int, since: str | None, record: int | None, as_json: bool
) -> None:
    """Send a callback once more what the log has from there on, in order.

    The notifications have the ids that they had: a receiver that remembers them drops
    what it has.
    """
    if (since is None) is (record is None):
        raise click.UsageError("give either --since or --record")
    body: Document = {"record": record} if since is None else {"since": since}
    found = hub.post(f"/api/subscriptions/{subscription}/replay", body)
    if as_json:
        say_json(found)
        return
    more = "at least " if found["has_more"] else ""
    records = plural(found["records"], "record")
    say(f"sending again: {more}{records}  (subscription {subscription})")


@subscriptions.command(
    name="rotate-secret",
    epilog=examples(
        "fanfare subs rotate-secret 1",
        "fanfare subs rotate-secret 1 --secret-file secret.txt",
    ),
)
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@secret_option("secret", "The new secret, instead of one that the hub makes.")
@json_option()
@speaks_to_hub
def rotate_secret(hub: Hub, subscription: int, secret: str, as_json: bool) -> None:
    """Sign the deliveries of a subscription with another secret, and print it.

    The former one signs as well for a while.
    """
    found = hub.post(f"/api/subscriptions/{subscription}/secret", {"secret": secret})
    if as_json:
        say_json(found)
        return
    if found["secret"]:
        say(found["secret"])
        say("the secret is not shown again", err=True)
    if former := _former_secret(found):
        say(f"the former one {former}", err=True)


subscriptions_argument = click.argument(
    "subscriptions", nargs=-1, metavar="[ID|CALLBACK…]"
)
"""Subscriptions by id or callback; ``-`` stands for the lines of standard input.

A callback stands for all of its subscriptions. If none is named, options select them.
"""


@subscriptions.command()
@subscriptions_argument
@subscription_selection
@account_option
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def pause(
    hub: Hub, /, subscriptions: tuple[str, ...], as_json: bool, **given: object
) -> None:
    """Send nothing to callbacks, for now.

    What comes meanwhile is sent when they are resumed. A callback stands for all of its
    subscriptions.
    """
    if is_by_filter(
        hub, "pause", "subscriptions", subscriptions, given, as_json=as_json
    ):
        return

    def pause_one(name: str, subscription: int) -> Document:
        found = hub.post(f"/api/subscriptions/{subscription}/pause")
        if not as_json:
            _say_turned("paused", found)
        return found

    _each_subscription(hub, subscriptions, pause_one, as_json=as_json)


@subscriptions.command()
@subscriptions_argument
@subscription_selection
@account_option
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def resume(
    hub: Hub, /, subscriptions: tuple[str, ...], as_json: bool, **given: object
) -> None:
    """Send callbacks that were paused what they lack, and what comes."""
    if is_by_filter(
        hub, "resume", "subscriptions", subscriptions, given, as_json=as_json
    ):
        return

    def resume_one(name: str, subscription: int) -> Document:
        found = hub.post(f"/api/subscriptions/{subscription}/resume")
        if not as_json:
            _say_turned("resumed", found)
        return found

    _each_subscription(hub, subscriptions, resume_one, as_json=as_json)


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def resubscribe(hub: Hub, subscription: int, as_json: bool) -> None:
    """Have a subscription that has ended begin anew, from now on.

    With its callback, topic, format and secret. `fanfare subs list --state over` lists
    those that have ended.
    """
    found = hub.post(f"/api/subscriptions/{subscription}/resubscribe")
    if as_json:
        say_json(found)
    else:
        _say_turned("subscribed", found)


@subscriptions.command()
@subscriptions_argument
@subscription_selection
@account_option
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def retry(
    hub: Hub, /, subscriptions: tuple[str, ...], as_json: bool, **given: object
) -> None:
    """Try callbacks now that wait for their next try."""
    if is_by_filter(
        hub, "retry", "subscriptions", subscriptions, given, as_json=as_json
    ):
        return

    def retry_one(name: str, subscription: int) -> Document:
        hub.post("/api/deliveries/retry", {"subscription": subscription})
        found = hub.get(f"/api/subscriptions/{subscription}")
        if not as_json:
            _say_turned("due", found)
        return found

    _each_subscription(hub, subscriptions, retry_one, as_json=as_json)


def _say_turned(what: str, found: Document) -> None:
    say(
        f"{what}  {printable(found['callback'])}  (subscription {found['id']})\n"
        f"  to {printable(found['topic'])}"
    )


def _each_subscription(
    hub: Hub, subscriptions: Sequence[str], verb: Verb, *, as_json: bool
) -> None:
    """Apply a verb to each subscription that is named; see `repeat_verb`."""
    repeat_verb(
        with_input(subscriptions, "ID|CALLBACK"),
        partial(_subscription_ids, hub),
        verb,
        what="subscriptions",
        as_json=as_json,
    )


def _subscription_ids(hub: Hub, name: str) -> list[int]:
    if name.isascii() and name.isdigit():
        return [int(name)]
    callback = with_scheme(name)
    of_it = hub.each("/api/subscriptions", "subscriptions", callback=callback)
    if found := [int(each["id"]) for each in of_it]:
        return found
    raise Failure(f"no subscription of {callback}; see `fanfare subs list`")


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="[ID]", required=False)
@subscription_selection
@account_option
@plan_options
@json_option()
@speaks_to_hub
def remove(
    hub: Hub, /, subscription: int | None, as_json: bool, **given: object
) -> None:
    """End a subscription, or all that match a filter, and tell the callbacks."""
    if is_by_filter(
        hub, "remove", "subscriptions", subscription, given, as_json=as_json
    ):
        return
    found = hub.delete(f"/api/subscriptions/{subscription}")
    if as_json:
        say_json(found)
    else:
        say(f"ended  {printable(found['callback'])}")


MADE_AT_ONCE = 8
"""So many requests at once: each may wait for the first fetch of its topic."""
LARGEST_FILE = 256 * 1024 * 1024


class SubscriptionOutcome(StrEnum):
    """How the import of one subscription ended."""

    MADE = "subscribed"
    WOULD_BE = "would be subscribed"
    KNOWN = "already there"
    REPEATED = "repeated in the file"
    FAILED = "failed"


class ImportedSubscription(Struct, frozen=True, kw_only=True):
    """What became of one subscription of a file.

    ``reason``: why it failed. ``feed_error``: why its feed cannot be read now.
    """

    place: str
    topic: str
    callback: str
    outcome: SubscriptionOutcome
    reason: str = ""
    feed_error: str = ""


@subscriptions.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.File("rb"), metavar="FILE")
@click.option(
    "--account",
    default="",
    help="The account that gets the subscriptions; it must have a token.  [default:"
    " operator]",
)
@secret_option("secret", "The secret of subscriptions that have none.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="by-topic",
    show_default=True,
    help="The format of subscriptions that name none.",
)
@click.option(
    "--signature",
    type=click.Choice(SIGNINGS),
    default=OF_OLD,
    show_default=True,
    help="The algorithm of X-Hub-Signature. sha1+sha256: sha1, as clients of"
    " Superfeedr expect, and sha256 in X-Hub-Signature-256.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@json_option("Print the report as one JSON object.")
@speaks_to_hub
def import_subscriptions(
    hub: Hub,
    files: tuple[BinaryIO, ...],
    account: str,
    secret: str,
    format_: str,
    signature: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import subscriptions from files saved at another hub.

    FILE is an answer of Superfeedr's hub.mode=list, JSON Lines, or CSV, with topic,
    callback, and optionally format and secret; "-" is standard input. Subscriptions
    that exist are not changed, so an import can be repeated. Exit code 1 if any failed.
    """
    if account:
        hub.get("/api/subscriptions", account=account, limit=1)  # raises if unknown
    written = [each for file in files for each in _read(file)]
    if not written:
        raise Failure("no subscriptions found in the files")
    defaults = {"format": format_, "secret": secret, "algorithm": signature}
    make = _Maker(hub, account=account, defaults=defaults, is_dry=dry_run)
    found = list(_progress(make.all(written), len(written)))
    if as_json:
        _print_json(found)
    else:
        _print_report(found)
    if any(each.outcome is SubscriptionOutcome.FAILED for each in found):
        raise Failure("some subscriptions could not be made")


def _read(file: BinaryIO) -> Iterator[WrittenSubscription]:
    body = file.read(LARGEST_FILE + 1)
    if len(body) > LARGEST_FILE:
        raise Failure(f"{file.name}: more than {LARGEST_FILE} bytes; split it")
    try:
        yield from read_subscriptions(body.decode())
    except InvalidValue as error:
        raise Failure(f"{file.name}: {error}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{file.name}: expected UTF-8") from error


class _Maker:
    """Makes the subscriptions of a file that the hub does not have yet."""

    def __init__(
        self, hub: Hub, *, account: str, defaults: Document, is_dry: bool
    ) -> None:
        """Take ``defaults``: what the API is sent where the file says nothing."""
        self._hub = hub
        self._account = account
        self._defaults = defaults
        self._is_dry = is_dry

    def all(
        self, written: Iterable[WrittenSubscription]
    ) -> Iterator[ImportedSubscription]:
        """Make all, in the order of the file; a repeated one is only reported."""
        met: set[tuple[str, str]] = set()
        first: list[tuple[WrittenSubscription, bool]] = []
        for each in written:
            pair = each.topic, each.callback
            first.append((each, pair in met))
            met.add(pair)
        with ThreadPoolExecutor(MADE_AT_ONCE) as pool:
            waiting = iter(first)
            while some := list(islice(waiting, MADE_AT_ONCE * 8)):
                yield from pool.map(lambda one: self._outcome(*one), some)

    def _outcome(
        self, written: WrittenSubscription, is_repeated: bool
    ) -> ImportedSubscription:
        outcome, reason, feed_error = SubscriptionOutcome.FAILED, written.fault, ""
        try:
            if is_repeated and not reason:
                outcome = SubscriptionOutcome.REPEATED
            elif not reason:
                outcome, feed_error = self._make(written)
        except HubUnreachable:
            raise
        except (Failure, InvalidValue) as error:
            reason = error.message if isinstance(error, Failure) else str(error)
        return ImportedSubscription(
            place=written.place,
            topic=written.topic,
            callback=written.callback,
            outcome=outcome,
            reason=reason,
            feed_error=feed_error,
        )

    def _make(self, written: WrittenSubscription) -> tuple[SubscriptionOutcome, str]:
        """Make one unless it exists; return the outcome, and the error of its feed.

        Raises `InvalidValue` and `Failure`.
        """
        topic = read_web_url(written.topic, "topic")
        callback = read_callback(written.callback)
        if self._is_there(topic, callback):
            return SubscriptionOutcome.KNOWN, ""
        if self._is_dry:
            return SubscriptionOutcome.WOULD_BE, ""
        body: Document = {
            "account": self._account,
            "topic": topic,
            "callback": callback,
            **self._defaults,
        }
        for name in ("format", "secret"):
            if given := getattr(written, name):
                body[name] = given
        made = self._hub.post("/api/subscriptions", body)
        return SubscriptionOutcome.MADE, str(made["feed_status"]["error"])

    def _is_there(self, topic: str, callback: str) -> bool:
        account = self._account or "operator"
        page = self._hub.get(
            "/api/subscriptions", topic=topic, callback=callback, account=account
        )
        return any(each["state"] == "active" for each in page["subscriptions"])


def _progress(
    found: Iterable[ImportedSubscription], total: int
) -> Iterator[ImportedSubscription]:
    progress = Progress(total, "subscriptions")
    counts: Counter[SubscriptionOutcome] = Counter()
    for each in found:
        yield each
        counts[each.outcome] += 1
        progress.add(1, _counted(counts))


def _counted(counts: Counter[SubscriptionOutcome]) -> str:
    return ", ".join(
        f"{counts[each]} {each}" for each in SubscriptionOutcome if counts[each]
    )


def _print_report(found: list[ImportedSubscription]) -> None:
    for each in found:
        which = f"{printable(each.topic)} to {printable(each.callback)}"
        if each.outcome is SubscriptionOutcome.FAILED:
            reason = printable(each.reason)
            say(f"failed  {each.place}: {which}: {reason}")
        elif each.feed_error:
            error = printable(each.feed_error)
            say(f"in error  {each.place}: {printable(each.topic)}: {error}")
    say(_counted(Counter(each.outcome for each in found)))
    if errors := sum(bool(each.feed_error) for each in found):
        feeds = plural(errors, "of their feeds", "of their feeds")
        say(f"{feeds} cannot be read now and will be polled again")


def _print_json(found: list[ImportedSubscription]) -> None:
    counts = Counter(str(each.outcome) for each in found)
    report = {"counts": counts, "subscriptions": [asdict(each) for each in found]}
    say_json(report)
