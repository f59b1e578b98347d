"""Runs of the WebSub playground: a callback, a topic, and the messages exchanged.

Runs are in memory, and also packed in the database, so that their addresses last: for
30 days after somebody last looked at the run, or sent it a message. Everything is
bounded: runs, messages of a run, and bytes.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote_plus, urlsplit
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct, msgpack
from msgspec.structs import replace

from hub.limits.token_bucket import Rate, TokenBucket
from hub.publishing.local_topics import PLAYGROUND_PATH
from hub.runtime.clock import Clock
from protocols.http import HeaderLink, format_link_header
from protocols.websub.exchange_review import Remark
from storage.errors import NotFound
from storage.records import Account, AccountId, StoredRun

KEPT: Final = timedelta(days=30)
"""How long a run is kept after it was last looked at, and after its last message except
those of the hub itself."""
USE_SECONDS: Final = 3_600.0
"""Seconds between two looks at a run from which on the later one is stored."""
MOST_RUNS: Final = 100
MOST_OF_ACCOUNT: Final = 10
MOST_EXCHANGES: Final = 100
"""Messages of a run; older ones are forgotten."""
MOST_BYTES: Final = 500_000
"""Bytes of all messages of a run."""
KEPT_BODY: Final = 32_768
"""Bytes of a body that are kept."""
KEPT_HEADERS: Final = 60
LONGEST_HEADER: Final = 4_096
MOST_ENTRIES: Final = 20
"""Entries of a topic of the playground."""
MOST_KNOWN: Final = 100
"""Secrets that a run remembers, and requests whose challenges it confirms."""
ARRIVALS: Final = Rate(per_second=2.0, burst=30.0)
"""Requests from outside that one run accepts."""
MOST_WAITING: Final = 4
"""Requests to one callback that may wait for a slow answer."""
SECRET_MARK: Final = "(secret)"  # noqa: S105 - it stands for one
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that carry credentials of others."""
NOT_SHOWN: Final = "(not shown)"
_PARAMETER: Final = re.compile(r"(?<![^&?])([^&?=\s]{1,200})=[^&\s]*")


class PlaygroundStep(StrEnum):
    """What a message is about."""

    DISCOVER = "discover"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    VERIFY = "verify"  # the callback confirms, or the hub denies
    PUBLISH = "publish"
    FETCH = "fetch"  # a hub or a subscriber fetches the topic
    NOTIFY = "notify"


class MessageSender(StrEnum):
    """Who sent a request."""

    PLAYGROUND = "playground"
    HUB = "hub"  # this one
    OTHERS = "others"


class ChallengeManner(StrEnum):
    """How the callback answers a challenge."""

    CONFIRM = "confirm"  # only requests made in this run
    CONFIRM_ALL = "confirm-all"
    WRONG = "wrong-challenge"
    NOT_FOUND = "not-found"
    SLOW = "slow"


class DeliveryManner(StrEnum):
    """How the callback answers a notification."""

    ACCEPT = "accept"
    ERROR = "error"
    GONE = "gone"
    REDIRECT = "redirect"
    SLOW = "slow"


class HttpMessage(Struct, frozen=True, kw_only=True):
    """A request or an answer. ``line`` is its first line, ``body`` its body or only the
    beginning of it (``is_excerpt``), and ``size`` the bytes of it that were read."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    size: int
    is_excerpt: bool

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def kept_bytes(self) -> int:
        return len(self.body) + sum(len(n) + len(v) for n, v in self.headers)


def message_of(
    line: str,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    is_whole: bool = True,
) -> HttpMessage:
    """A message as it is kept: bounded, without secrets. ``is_whole``: ``body`` is
    complete."""
    kept = tuple(
        (_clean(name[:LONGEST_HEADER]), _clean(value[:LONGEST_HEADER]))
        for name, value in headers[:KEPT_HEADERS]
    )
    shown = body[:KEPT_BODY]
    if b"=" in shown:
        shown = without_secret(shown.decode("latin-1")).encode("latin-1")
    return HttpMessage(
        line=_clean(without_secret(line)[:LONGEST_HEADER]),
        headers=kept,
        body=shown,
        size=len(body),
        is_excerpt=not is_whole or len(body) > KEPT_BODY,
    )


def _clean(text: str) -> str:
    """The text without characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def without_credentials(message: HttpMessage) -> HttpMessage:
    """A message without its credentials, which its sender trusts to the hub and not to
    the run: a browser that opens a topic of the playground sends its session along."""
    headers = tuple(
        (name, NOT_SHOWN if name.lower() in _CREDENTIALS else value)
        for name, value in message.headers
    )
    return replace(message, headers=headers)


def without_secret(text: str) -> str:
    """The text without the value of ``hub.secret``, however its name is escaped."""

    def mask(parameter: re.Match[str]) -> str:
        name = parameter[1]
        is_secret = unquote_plus(name) == "hub.secret"
        return f"{name}={SECRET_MARK}" if is_secret else parameter[0]

    return _PARAMETER.sub(mask, text)


class PlaygroundExchange(Struct, frozen=True, kw_only=True):
    """A request and its answer; if ``response`` is None, ``error`` says why.

    ``is_withheld``: the answer comes from an allowed network, and is not shown to
    accounts.
    """

    step: PlaygroundStep
    sender: MessageSender
    at: datetime
    method: str
    url: str
    request: HttpMessage
    response: HttpMessage | None
    status: int
    milliseconds: int
    error: str = ""
    number: int = 0
    is_withheld: bool = False
    remarks: tuple[Remark, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return bool(self.error) or any(it.level == "bad" for it in self.remarks)

    @property
    def kept_bytes(self) -> int:
        answer = self.response.kept_bytes if self.response else 0
        return self.request.kept_bytes + answer


class PlaygroundEntry(Struct, frozen=True, kw_only=True):
    """An entry that was published to a topic of the playground."""

    number: int
    title: str
    text: str
    at: datetime


@dataclass(slots=True, kw_only=True, eq=False)
class PlaygroundRun:
    """One developer's run. ``topic`` is what is subscribed to, ``topic_url`` the
    address of the run's own topic, ``hub`` the hub that was discovered or named.

    ``sees_all``: the run is an operator's, who also sees answers of allowed networks.
    """

    id: str
    account: Account
    sees_all: bool
    created_at: datetime
    used_at: datetime
    topic: str
    hub: str
    own_hub: str
    topic_url: str
    callback_url: str
    secret: str
    arrivals: TokenBucket
    unreachable: str = ""
    on_challenge: ChallengeManner = ChallengeManner.CONFIRM
    on_delivery: DeliveryManner = DeliveryManner.ACCEPT
    exchanges: deque[PlaygroundExchange] = field(default_factory=deque)
    forgotten: int = 0
    entries: deque[PlaygroundEntry] = field(
        default_factory=lambda: deque(maxlen=MOST_ENTRIES)
    )
    published: int = 0
    wanted: dict[tuple[str, str], bool] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """The secret that notifications to each callback are signed with, if it was
    seen."""
    waiting: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    unsaved: asyncio.Event = field(default_factory=asyncio.Event)
    """Shared by all runs; set when `is_saved` of one becomes false."""
    is_saved: bool = False
    _number: int = 0

    @property
    def expires_at(self) -> datetime:
        return self.used_at + KEPT

    @property
    def has_own_topic(self) -> bool:
        return self.topic == self.topic_url

    def record(self, exchange: PlaygroundExchange) -> PlaygroundExchange:
        """Keep an exchange under the next number; the oldest ones are dropped for
        it."""
        self._number += 1
        kept = replace(exchange, number=self._number)
        self.exchanges.append(kept)
        if exchange.sender is not MessageSender.HUB:  # the hub's never end
            self.used_at = exchange.at
        while len(self.exchanges) > MOST_EXCHANGES or self._is_too_large():
            self.exchanges.popleft()
            self.forgotten += 1
        self.changed.set()
        self.touch()
        return kept

    def touch(self) -> None:
        """Mark the run as changed since it was saved."""
        self.is_saved = False
        self.unsaved.set()

    def use(self, now: datetime) -> None:
        """Note that somebody looks at the run."""
        if (now - self.used_at).total_seconds() >= USE_SECONDS:
            self.touch()
        self.used_at = now

    def _is_too_large(self) -> bool:
        if len(self.exchanges) < 2:
            return False
        return sum(each.kept_bytes for each in self.exchanges) > MOST_BYTES

    def exchange(self, number: int) -> PlaygroundExchange:
        """The exchange with this number. Raises `NotFound`."""
        for each in self.exchanges:
            if each.number == number:
                return each
        raise NotFound("message", number)

    @property
    def last_number(self) -> int:
        return self._number

    def since(self, number: int) -> Iterator[PlaygroundExchange]:
        """Exchanges with a higher number."""
        return (each for each in self.exchanges if each.number > number)

    def publish(self, title: str, text: str, at: datetime) -> PlaygroundEntry:
        """Add an entry to the run's own topic."""
        self.published += 1
        title = title or f"Entry {self.published}"
        entry = PlaygroundEntry(number=self.published, title=title, text=text, at=at)
        self.entries.appendleft(entry)
        self.touch()
        return entry

    def withdraw(self, entry: PlaygroundEntry) -> None:
        """Remove an entry that nobody was told of."""
        self.entries.remove(entry)
        self.touch()

    def want(self, mode: str, topic: str) -> None:
        """Have the callback confirm a request that was made in this run."""
        self.wanted[mode, topic] = True
        _forget_oldest(self.wanted)
        self.touch()

    def note_secret(self, callback: str, secret: str) -> None:
        """Note the secret of a request to subscribe a callback; "": it has no
        secret."""
        self.secrets.pop(callback, None)
        self.secrets[callback] = secret
        _forget_oldest(self.secrets)
        self.touch()


def _forget_oldest(known: dict[Any, Any]) -> None:
    if len(known) > MOST_KNOWN:
        del known[next(iter(known))]


class PackedRun(Struct, frozen=True, kw_only=True):
    """The parts of a run that are kept in the database; see `PlaygroundRun`."""

    account: Account
    sees_all: bool
    created_at: datetime
    topic: str
    hub: str
    own_hub: str
    topic_url: str
    callback_url: str
    secret: str
    unreachable: str
    on_challenge: ChallengeManner
    on_delivery: DeliveryManner
    exchanges: tuple[PlaygroundExchange, ...]
    forgotten: int
    entries: tuple[PlaygroundEntry, ...]
    published: int
    wanted: tuple[tuple[str, str], ...]
    secrets: dict[str, str]
    number: int


_decoder: Final = msgpack.Decoder(PackedRun)


def pack_run(run: PlaygroundRun) -> StoredRun:
    packed = PackedRun(
        account=run.account,
        sees_all=run.sees_all,
        created_at=run.created_at,
        topic=run.topic,
        hub=run.hub,
        own_hub=run.own_hub,
        topic_url=run.topic_url,
        callback_url=run.callback_url,
        secret=run.secret,
        unreachable=run.unreachable,
        on_challenge=run.on_challenge,
        on_delivery=run.on_delivery,
        exchanges=tuple(run.exchanges),
        forgotten=run.forgotten,
        entries=tuple(run.entries),
        published=run.published,
        wanted=tuple(run.wanted),
        secrets=run.secrets,
        number=run.last_number,
    )
    return StoredRun(id=run.id, used_at=run.used_at, body=msgpack.encode(packed))


def unpack_run(stored: StoredRun, arrivals: TokenBucket) -> PlaygroundRun:
    """The run. Raises `msgspec.MsgspecError` if another version packed it
    differently."""
    packed = _decoder.decode(stored.body)
    return PlaygroundRun(
        id=stored.id,
        account=packed.account,
        sees_all=packed.sees_all,
        created_at=packed.created_at,
        used_at=stored.used_at,
        topic=packed.topic,
        hub=packed.hub,
        own_hub=packed.own_hub,
        topic_url=packed.topic_url,
        callback_url=packed.callback_url,
        secret=packed.secret,
        arrivals=arrivals,
        unreachable=packed.unreachable,
        on_challenge=packed.on_challenge,
        on_delivery=packed.on_delivery,
        exchanges=deque(packed.exchanges),
        forgotten=packed.forgotten,
        entries=deque(packed.entries, maxlen=MOST_ENTRIES),
        published=packed.published,
        wanted=dict.fromkeys(packed.wanted, True),
        secrets=packed.secrets,
        is_saved=True,
        _number=packed.number,
    )


class PlaygroundRuns:
    """All runs of this hub, found by their own id or by their public addresses."""

    def __init__(self, clock: Clock, public_url: str) -> None:
        self._clock = clock
        self.public_url = public_url
        self._runs: dict[str, PlaygroundRun] = {}
        self._topics: dict[str, PlaygroundRun] = {}
        self._callbacks: dict[str, PlaygroundRun] = {}
        self.unsaved = asyncio.Event()
        self.topic_prefix = f"{public_url}{PLAYGROUND_PATH}topics/"
        self.callback_prefix = f"{public_url}{PLAYGROUND_PATH}callbacks/"

    def __bool__(self) -> bool:
        return bool(self._runs)

    def start(
        self, account: Account, *, topic: str, hub: str, sees_all: bool
    ) -> PlaygroundRun:
        """Start a run. ``topic`` "": the run's own topic; ``hub``: the hub that the
        topic names, "" for this hub."""
        own_topic = f"{self.topic_prefix}{secrets.token_urlsafe(16)}"
        now, own_hub = self._clock.now(), hub or f"{self.public_url}/hub"
        run = PlaygroundRun(
            id=secrets.token_urlsafe(16),
            account=account,
            sees_all=sees_all,
            created_at=now,
            used_at=now,
            topic=topic or own_topic,
            hub="" if topic else own_hub,
            own_hub=own_hub,
            topic_url=own_topic,
            callback_url=f"{self.callback_prefix}{secrets.token_urlsafe(16)}",
            secret=secrets.token_hex(20),
            arrivals=TokenBucket(ARRIVALS, self._clock.monotonic()),
        )
        self._put(run)
        run.publish("The first entry", "It is there before anybody subscribes.", now)
        return run

    def restore(self, stored: StoredRun) -> None:
        """Load a run. Raises `msgspec.MsgspecError` if another version packed it
        differently."""
        bucket = TokenBucket(ARRIVALS, self._clock.monotonic())
        self._put(unpack_run(stored, bucket))

    def _put(self, run: PlaygroundRun) -> None:
        run.unsaved = self.unsaved
        self._runs[run.id] = run
        self._topics[run.topic_url] = run
        self._callbacks[run.callback_url] = run

    def take_unsaved(self) -> list[PlaygroundRun]:
        """The runs to be saved now; they count as saved from here on."""
        self.unsaved.clear()
        found = [each for each in self._runs.values() if not each.is_saved]
        for each in found:
            each.is_saved = True
        return found

    @property
    def is_full(self) -> bool:
        return len(self._runs) >= MOST_RUNS

    def surplus(self, account: AccountId) -> PlaygroundRun | None:
        """The account's run that must be removed before it starts another; None if
        there is room."""
        own = self.of(account)
        most = len(own) if self.is_full else MOST_OF_ACCOUNT
        return own[-1] if own and len(own) >= most else None

    def of(self, account: AccountId | None) -> list[PlaygroundRun]:
        """The runs of an account, or all runs; the last used one first."""
        found = [
            each for each in self._runs.values() if account in (None, each.account.id)
        ]
        return sorted(found, key=lambda each: each.used_at, reverse=True)

    def get(self, id: str, account: AccountId | None) -> PlaygroundRun:
        """A run; raises `NotFound`, also if it belongs to another account than the
        given one."""
        run = self._runs.get(id)
        if run is None or account not in (None, run.account.id):
            raise NotFound("playground run", id[:40])
        run.use(self._clock.now())
        return run

    def expired(self) -> list[PlaygroundRun]:
        now = self._clock.now()
        return [each for each in self._runs.values() if each.expires_at <= now]

    def remove(self, run: PlaygroundRun) -> None:
        self._runs.pop(run.id, None)
        self._topics.pop(run.topic_url, None)
        self._callbacks.pop(run.callback_url, None)

    def of_topic(self, url: str) -> PlaygroundRun | None:
        return self._topics.get(url.partition("?")[0])

    def of_callback(self, url: str) -> PlaygroundRun | None:
        return self._callbacks.get(url.partition("?")[0])

    def topic_at(self, token: str) -> PlaygroundRun | None:
        return self._topics.get(self.topic_prefix + token)

    def callback_at(self, token: str) -> PlaygroundRun | None:
        return self._callbacks.get(self.callback_prefix + token)


# --- the topic of a run ---

TOPIC_TYPE: Final = "application/atom+xml"


def topic_links(run: PlaygroundRun) -> str:
    """The value of the ``Link`` header."""
    links = (
        HeaderLink(href=run.own_hub, rel="hub"),
        HeaderLink(href=run.topic_url, rel="self"),
    )
    return format_link_header(links)


def topic_document(run: PlaygroundRun) -> bytes:
    """The topic in Atom."""
    updated = run.entries[0].at if run.entries else run.created_at
    entries = "".join(_entry(run, each) for each in run.entries)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{escape(run.topic_url)}</id>\n"
        f'<link rel="self" href={quoteattr(run.topic_url)}/>\n'
        f'<link rel="hub" href={quoteattr(run.own_hub)}/>\n'
        "<title>A topic of the playground</title>\n"
        f"<updated>{_written(updated)}</updated>\n"
        f"<author><name>Fanfare's WebSub playground</name></author>"
        f"{entries}\n</feed>\n"
    ).encode()


def _entry(run: PlaygroundRun, entry: PlaygroundEntry) -> str:
    address = f"{run.topic_url}#entry-{entry.number}"
    return (
        f"\n<entry>\n<id>{escape(address)}</id>\n<title>{_xml(entry.title)}</title>\n"
        f"<link href={quoteattr(address)}/>\n"
        f"<published>{_written(entry.at)}</published>\n"
        f"<updated>{_written(entry.at)}</updated>\n"
        f'<content type="text">{_xml(entry.text)}</content>\n</entry>'
    )


def _xml(text: str) -> str:
    """The text escaped, and without characters that XML does not allow."""
    kept = "".join(each for each in text if each.isprintable() or each in "\n\t")
    return escape(kept.encode("utf-8", "replace").decode())


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- forms, as people edit them ---


def form_lines(body: str) -> str:
    """The parameters of a form, decoded, one a line."""
    return "\n".join(
        f"{unquote_plus(name)}={unquote_plus(value)}"
        for each in body.split("&")
        if each
        for name, _, value in (each.partition("="),)
    )


def form_text(form: Mapping[str, str]) -> str:
    """Like `form_lines`; parameters without a value are left out."""
    return "\n".join(f"{name}={value}" for name, value in form.items() if value)


def form_body(lines: str) -> str:
    """The body of a form from the lines of `form_lines`."""
    pairs = (each.strip().partition("=") for each in lines.splitlines() if each.strip())
    return "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, _, v in pairs)


def parameters_of(query_or_body: str) -> Mapping[str, str]:
    """The parameters of a form; the last one if a name is repeated."""
    try:
        return dict(parse_qsl(query_or_body, keep_blank_values=True, max_num_fields=99))
    except ValueError:
        return {}


def query_of(url: str) -> str:
    return urlsplit(url).query
