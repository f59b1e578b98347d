"""Hubs of others, which feeds name: they ask, push, forget, lie and vanish as drawn."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from random import Random
from urllib.parse import parse_qsl, urlencode

from hub.http import Request
from tests.simulation.asgi_requests import AsgiRequest, AsgiResponse
from tests.support.http_server import ServerAnswer
from tests.support.publisher import PublishedFeed

Door = Callable[[AsgiRequest], Awaitable[AsgiResponse | None]]
"""Asks the hub that is played; None: nothing was heard of it."""
NEVER_PUBLISHED = 900_000
"""Numbers of entries from here on stand in forgeries alone."""
SHORTEST_LEASE = 7_200
"""Seconds; less is to be refused."""
LEASES = (*(["864000", "7200", "9000"] * 4), "60", "0", "-5", "soon", "", "9" * 30)
TEN_DAYS = 864_000.0
MOST_TRIES = 4
BAD_ANSWERS = (
    ServerAnswer(status=500),
    ServerAnswer(status=404),
    ServerAnswer(status=429, headers={"Retry-After": "30"}),
    ServerAnswer(status=503, headers={"Retry-After": "soon"}),
    ServerAnswer(status=307, headers={"Location": "https://hub1.elsewhere.example/"}),
    None,  # a reset
)


@dataclass(frozen=True, slots=True)
class Held:
    """A subscription as its hub knows it. ``until`` is a time of the loop."""

    callback: str
    topic: str
    secret: str
    until: float


class OtherHub:
    """Moody until the world is at peace. What it does outlives the hub that is
    played; what it was told of the outcome it remembers:

    ``acknowledged`` has the numbers of entries, by feed, that were pushed as they
    should be, and got an answer of 2xx. ``gapped`` are feeds of which a part was
    pushed. ``complaints`` are breaches of the protocol.
    """

    def __init__(
        self,
        random: Random,
        ask_hub: Door,
        is_wanted: Callable[[str], bool],
        count: Callable[[str], None],
    ) -> None:
        """``is_wanted``: whether the feed of a topic is there, for all we know."""
        self.is_odd = True
        self.acknowledged: dict[int, set[int]] = {}
        self.gapped: set[int] = set()
        self.complaints: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self._held: dict[str, Held] = {}  # by callback
        self._former: set[str] = set()  # callbacks whose feed was taken out since
        self._is_wanted = is_wanted
        self._random = random
        self._ask_hub = ask_hub
        self._count = count

    async def answer(self, request: Request) -> ServerAnswer | None:
        """To a request to subscribe, or to end that. None resets the connection."""
        form = dict(parse_qsl((request.body or b"").decode(), keep_blank_values=True))
        if self.is_odd and self._random.random() < 0.2:
            self._count("hub in trouble")
            return self._random.choice(BAD_ANSWERS)
        if self.is_odd and self._random.random() < 0.05:
            await asyncio.sleep(60)
        self._begin(self._verify(form))
        return ServerAnswer(status=202)

    def tell(self, feed: PublishedFeed, topic: str) -> None:
        """The publisher says that there is news."""
        now = asyncio.get_running_loop().time()
        for held in list(self._held.values()):
            if held.topic == topic and held.until > now:
                self._begin(self._distribute(held, replace(feed)))

    def secret_of(self, callback: str) -> str:
        """ "" if no such subscription."""
        held = self._held.get(callback)
        return held.secret if held else ""

    def leave(self, topic: str, number: int) -> None:
        """The feed is taken out. Its callbacks do not serve it when it comes back."""
        self.acknowledged.pop(number, None)
        held = self._held.values()
        self._former |= {each.callback for each in held if each.topic == topic}

    async def settle(self) -> None:
        """Until nothing is under way any more."""
        while self.tasks:
            await asyncio.wait(self.tasks)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.complaints.append(f"a hub of others broke: {error!r}")

    # --- intents -------------------------------------------------------------------

    async def _verify(self, form: dict[str, str]) -> None:
        await asyncio.sleep(self._random.uniform(0, 3))
        throw = self._random.random() if self.is_odd else 1.0
        if throw < 0.06:
            self._count("hub that asks nothing")
            return
        if throw < 0.12:
            self._count("hub that denies")
            await self._ask(form, mode="denied")
            return
        if throw < 0.4:
            self._count("hub that asks what is not so")
            await self._lie(form)
        await self._confirm(form)
        if throw < 0.5:
            await self._confirm(form)

    async def _confirm(self, form: dict[str, str]) -> None:
        lease = self._random.choice(LEASES) if self.is_odd else "864000"
        is_end = form["hub.mode"] == "unsubscribe"
        if not await self._ask(form, lease="" if is_end else lease):
            return
        callback = form["hub.callback"]
        if is_end:
            self._held.pop(callback, None)
            return
        seconds = min(float(lease), TEN_DAYS) if lease.isdigit() else TEN_DAYS
        if seconds < SHORTEST_LEASE:
            self.complaints.append(f"took a lease of {lease} s")
        self._count("pushes subscribed")
        until = asyncio.get_running_loop().time() + seconds
        self._held.pop(callback, None)  # the newest is the last
        self._held[callback] = Held(
            callback, form["hub.topic"], form["hub.secret"], until
        )

    async def _lie(self, form: dict[str, str]) -> None:
        """About what nobody asked for; whoever confirms that takes part."""
        made_up = self._random.choice(
            (
                {"topic": form["hub.topic"] + "x"},
                {"callback": form["hub.callback"] + "x"},
                {"mode": "publish"},
                {"challenge": "\x07 \u20ac"},
                {"challenge": ""},
            )
        )
        if await self._ask(form, **made_up):
            self.complaints.append(
                f"confirmed what nobody had asked for, by its {', '.join(made_up)}"
            )

    async def _ask(
        self,
        form: dict[str, str],
        *,
        mode: str = "",
        topic: str = "",
        callback: str = "",
        challenge: str | None = None,
        lease: str = "",
    ) -> bool:
        """Whether it was confirmed."""
        if challenge is None:
            challenge = f"{self._random.getrandbits(128):032x}"
        asked = {
            "hub.mode": mode or form["hub.mode"],
            "hub.topic": topic or form["hub.topic"],
            "hub.challenge": challenge,
        }
        if lease:
            asked["hub.lease_seconds"] = lease
        url = f"{callback or form['hub.callback']}?{urlencode(asked)}"
        heard = await self._ask_hub(AsgiRequest(method="GET", url=url))
        return heard is not None and _is_confirmed(heard, challenge)

    # --- pushes --------------------------------------------------------------------

    async def _distribute(self, held: Held, feed: PublishedFeed) -> None:
        """``feed`` is as it was when its publisher told of it."""
        throw = self._random.random() if self.is_odd else 1.0
        if throw < 0.12:
            self._count("pushes lost")
            return
        if throw < 0.28:
            self._count("pushes late")
            await asyncio.sleep(self._random.uniform(5, 90))
        elif throw < 0.33:
            self._count("pushes in part")
            self.gapped.add(feed.number)
            feed.most = self._random.randint(1, 2)
        elif throw < 0.51:
            self._count("pushes forged")
            await self._push(held, *self._forged(held, feed))
        elif throw < 0.60:
            self._count("pushes of nonsense")
            await self._push(held, *_signed(held, self._nonsense(feed)))
        await asyncio.sleep(self._random.uniform(0, 2))
        for _ in range(2 if 0.60 <= throw < 0.70 else 1):
            if await self._push(held, *_signed(held, feed.document())):
                self._note_acknowledged(held, feed)

    def _forged(self, held: Held, feed: PublishedFeed) -> tuple[bytes, str]:
        """By somebody who knows the callback, and not its secret."""
        made_up = replace(
            feed, count=NEVER_PUBLISHED + self._random.randint(1, 9), most=1
        ).document()
        right = signed_with(held.secret, made_up)
        return made_up, self._random.choice(
            (
                "",
                signed_with("", made_up),
                signed_with("the secret of another", made_up),
                signed_with(held.secret, feed.document()),
                right[:-1],
                right.replace("sha256", "md5"),
                right.replace("sha256", "sha1"),
                right.partition("=")[2],
            )
        )

    def _nonsense(self, feed: PublishedFeed) -> bytes:
        """What a hub signs and is no document of the feed."""
        number = NEVER_PUBLISHED + self._random.randint(1, 9)
        other = replace(feed, number=feed.number + 50, count=number, most=1, links="")
        return self._random.choice(
            (
                other.document(),
                feed.document()[: self._random.randint(0, 150)],
                b"<html><title>Welcome</title><p>Nothing here.",
                b"",
                self._random.randbytes(200),
            )
        )

    async def _push(self, held: Held, body: bytes, signature: str) -> bool:
        """Whether it was taken; tried again for a while if it was not."""
        headers = {"Content-Type": "application/atom+xml"}
        if signature:
            headers["X-Hub-Signature"] = signature
        request = AsgiRequest(
            method="POST", url=held.callback, headers=headers, body=body
        )
        for _ in range(MOST_TRIES):
            heard = await self._ask_hub(request)
            if heard is not None and 200 <= heard.status < 300:
                return True
            if heard is not None and heard.status == 410:
                self._held.pop(held.callback, None)
                return False
            await asyncio.sleep(self._random.uniform(1, 10))
        return False

    def _note_acknowledged(self, held: Held, feed: PublishedFeed) -> None:
        """Of what goes to a former callback, too, nothing is owed: it may be ignored,
        since the later one gets it."""
        ours = [each for each in self._held.values() if each.topic == held.topic]
        is_newest = bool(ours) and ours[-1].callback == held.callback
        is_former = held.callback in self._former or not self._is_wanted(held.topic)
        if is_former or not is_newest:
            return
        self._count("pushes taken")
        first = max(feed.count - feed.most, 0) + 1
        numbers = range(first, feed.count + 1)
        self.acknowledged.setdefault(feed.number, set()).update(numbers)


def _is_confirmed(heard: AsgiResponse, challenge: str) -> bool:
    return 200 <= heard.status < 300 and heard.body == challenge.encode()


def _signed(held: Held, body: bytes) -> tuple[bytes, str]:
    return body, signed_with(held.secret, body)


def signed_with(secret: str, body: bytes) -> str:
    """The header of a push."""
    return f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"
