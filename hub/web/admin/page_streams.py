"""Pages that are watched: what changes on them is sent to those who have them open.

Every page of a session can be requested as an event stream, too, by ``Accept:
text/event-stream``. Once a second each page that somebody watches is rendered as it is
when opened, once for all who see the same. What all of them read is read at once, if
the engine does that. Of a page's parts (`hub.web.page_parts`), those that changed are
sent. While nobody watches, nothing is done.

A stream ends with its session. Watching a page does not count as using the session: one
that is not used ends although a page is open.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

import orjson
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hub.live.prepared_message import chunk_of
from hub.runtime.background import wait_for
from hub.runtime.metrics import Metrics
from hub.web.page_parts import PageParts, all_parts, changed_parts
from hub.web.page_rendering import PAGE_HEADERS, WatchedPage
from hub.web.problems import Problem, as_problem
from hub.web.streams.event_stream import EventWriter, until_over
from protocols.live.live_messages import FAILED, SHUTDOWN, Closing
from protocols.live.message_encoding import EVENT_STREAM
from storage.errors import StorageError

EVERY_SECONDS: Final = 1.0
MOST_SHARE: Final = 0.006
"""The share of a core that making pages may take of the event loop; above it they are
made less often. What the database takes for them comes on top."""
LONGEST_REST: Final = 30.0
"""The longest rest between two renderings, also after waiting for the database."""
LONGEST_SECONDS: Final = 5.0
"""The longest time that making one page may take."""
BEAT_SECONDS: Final = 10.0
CHECK_SECONDS: Final = 5.0
"""The time between two checks whether sessions are over."""
MOST_WATCHING: Final = 64
MOST_OF_ACCOUNTS: Final = 48
"""The most streams of all accounts together; the rest are for operators."""
MOST_OF_ACCOUNT: Final = 8
PAGE_GONE: Final = 3503
SESSION_ENDED: Final = Closing(3500, "not authorized: the session is over")

_BEAT: Final = chunk_of(b"event: beat\ndata:\n\n")
_HEADERS: Final = {
    **PAGE_HEADERS,
    "Content-Type": f"{EVENT_STREAM}; charset=utf-8",
    "X-Accel-Buffering": "no",  # proxies that would wait for more
}
log = structlog.get_logger()


class PageWriter(Protocol):
    """Where a stream is written to; see `hub.web.streams.event_stream.EventWriter`."""

    def write_chunk(self, chunk: bytes) -> None: ...
    def close(self, closing: Closing) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """A request to watch a page; all with the same ``key`` see the same.

    ``account``: the account for which the stream counts; None: it is an operator's, who
    may have all streams. ``is_over``: whether the ``session`` is over. ``make``: makes
    the page, as it is when opened.
    """

    key: Hashable
    session: Hashable = field(repr=False)
    account: int | None
    make: Callable[[], Awaitable[Response]]
    is_over: Callable[[], Awaitable[bool]]


@dataclass(slots=True, eq=False)
class PageWatcher:
    """One open page. ``has_parts``: it was sent all parts once."""

    request: WatchRequest
    writer: PageWriter
    has_parts: bool = False


@dataclass(slots=True, eq=False)
class WatchedView:
    """A page, as all watchers with the same key see it."""

    make: Callable[[], Awaitable[Response]]
    watchers: set[PageWatcher] = field(default_factory=set)
    parts: PageParts = field(default_factory=dict)

    def show(self, parts: PageParts) -> None:
        """Send the parts that have changed; watchers who have none yet are sent all."""
        changes = _event(changed_parts(self.parts, parts)) if self.parts else b""
        self.parts = parts
        for each in self.watchers:
            if each.has_parts and changes:
                each.writer.write_chunk(changes)
        newcomers = [each for each in self.watchers if not each.has_parts]
        self.welcome(*newcomers)

    def welcome(self, *newcomers: PageWatcher) -> None:
        if not (newcomers and self.parts):
            return
        whole = _event(all_parts(self.parts))
        for each in newcomers:
            each.has_parts = True
            each.writer.write_chunk(whole)

    def close(self, closing: Closing) -> None:
        for each in self.watchers:
            each.writer.close(closing)


def _event(html: list[str]) -> bytes:
    """An event with these parts; b"" if there are none."""
    if not html:
        return b""
    return chunk_of(b"event: parts\ndata: %b\n\n" % orjson.dumps(html))


ReadAhead = Callable[[], Awaitable[AbstractContextManager[object]]]


async def _read_nothing() -> AbstractContextManager[object]:
    return nullcontext()


class PageStreams:
    """The streams of all watched pages; `run` is the background task."""

    def __init__(
        self,
        metrics: Metrics | None = None,
        read_ahead: ReadAhead | None = None,
    ) -> None:
        """``read_ahead``: that of `storage.contract.Storage`."""
        self._metrics = metrics or Metrics()
        self._read_ahead = read_ahead or _read_nothing
        self._views: dict[Hashable, WatchedView] = {}
        self._held: Counter[int | None] = Counter()
        self._come = asyncio.Event()
        self._begun = asyncio.Event()
        self._is_check_due = False
        self._checked = self._beaten = 0.0
        self._is_closed = False
        self._cpu = 0.0
        """CPU seconds that pages took of the event loop since the last look began."""
        self.turn = 0
        """How many times pages were made: pages of the same turn may share facts."""

    async def run(self) -> None:
        while True:
            await self._come.wait()
            began, before, self._cpu = time.monotonic(), self._cpu, 0.0
            await self.look()
            spent = time.monotonic() - began
            dear = min(self._cpu, before)  # a page is dear once, when it is opened
            rest = min(dear / MOST_SHARE - spent, LONGEST_REST)
            await self.rest(max(EVERY_SECONDS - spent, rest))

    async def rest(self, seconds: float) -> None:
        """Wait; meanwhile serve new watchers, end streams, and send heartbeats."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await wait_for(self._begun, min(left, EVERY_SECONDS))
            now = time.monotonic()
            await self._end_sessions(now)
            self._send_heartbeat(now)
            if self._begun.is_set():
                self._begun.clear()
                await self._look_at_new()

    async def _look_at_new(self) -> None:
        self.turn += 1
        for view in list(self._views.values()):
            if not view.parts:
                await self._look_at(view)

    @property
    def views(self) -> int:
        """How many renderings serve all watchers."""
        return len(self._views)

    async def look(self) -> None:
        """Make each watched page once, and send what has changed."""
        self.turn += 1
        began = time.monotonic()
        await self._end_sessions(began)
        with await self._read_at_once():
            for view in list(self._views.values()):
                await self._look_at(view)
        self._send_heartbeat(began)

    async def _read_at_once(self) -> AbstractContextManager[object]:
        """Read what the pages read the last time, which costs less than one by one."""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._read_ahead()
        except TimeoutError:
            log.warning("watched_page_late", seconds=LONGEST_SECONDS)
            return nullcontext()

    def wake(self) -> None:
        """Have sessions checked soon: a session, or its token, has just ended."""
        self._is_check_due = True

    def close(self) -> None:
        """Close all streams, and accept no more: the hub is about to stop."""
        self._is_closed = True
        for view in self._views.values():
            view.close(SHUTDOWN)

    def answer(self, request: WatchRequest) -> Response:
        """The stream of a page. Raises `Problem` 429 and 503."""
        self._check_room(request)
        return PageStream(self, request)

    def _check_room(self, request: WatchRequest) -> None:
        held = self._held.total()
        of_accounts = held - self._held[None]
        is_full = request.account is not None and of_accounts >= MOST_OF_ACCOUNTS
        if self._is_closed or held >= MOST_WATCHING or is_full:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"expected at most {MOST_WATCHING} pages that are watched at a time,"
                f" {MOST_OF_ACCOUNTS} of them by accounts",
                headers={"Retry-After": f"{BEAT_SECONDS:g}"},
            )
        if request.account is None:
            return
        if self._held[request.account] >= MOST_OF_ACCOUNT:
            self._metrics.limited.add("pages_of_account")
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"expected at most {MOST_OF_ACCOUNT} watched pages of one account",
                headers={"Retry-After": f"{BEAT_SECONDS:g}"},
            )

    @contextmanager
    def watching(self, request: WatchRequest, writer: PageWriter) -> Iterator[None]:
        """Within the block the writer is sent changes of the page."""
        watcher = PageWatcher(request, writer)
        view = self._views.setdefault(request.key, WatchedView(request.make))
        view.watchers.add(watcher)
        view.welcome(watcher)
        self._count(request.account, 1)
        self._come.set()
        self._begun.set()
        if self._is_closed:
            writer.close(SHUTDOWN)
        try:
            yield
        finally:
            view.watchers.discard(watcher)
            if not view.watchers:
                del self._views[request.key]
            self._count(request.account, -1)
            if not self._views:
                self._come.clear()

    def _count(self, account: int | None, change: int) -> None:
        self._held[account] += change
        if not self._held[account]:
            del self._held[account]
        self._metrics.watched_pages.value = self._held.total()

    async def _look_at(self, view: WatchedView) -> None:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                page = await _Timed(view.make(), self._count_cpu)
        except TimeoutError:
            log.warning("watched_page_late", seconds=LONGEST_SECONDS)
        except Exception as error:
            _fail(view, error)
        else:
            began = time.thread_time()
            _show(view, page)
            self._count_cpu(time.thread_time() - began)

    def _count_cpu(self, seconds: float) -> None:
        self._cpu += seconds

    async def _end_sessions(self, now: float) -> None:
        if not self._is_check_due and now - self._checked < CHECK_SECONDS:
            return
        self._is_check_due, self._checked = False, now
        sessions = dict[Hashable, list[PageWatcher]]()
        for view in self._views.values():
            for each in view.watchers:
                sessions.setdefault(each.request.session, []).append(each)
        for watchers in sessions.values():
            with suppress(StorageError):  # checked again soon
                if await watchers[0].request.is_over():
                    for each in watchers:
                        each.writer.close(SESSION_ENDED)

    def _send_heartbeat(self, now: float) -> None:
        """Send something to all watchers at intervals.

        A watcher who gets nothing for longer knows that the connection is lost.
        """
        if now - self._beaten < BEAT_SECONDS:
            return
        self._beaten = now
        for view in self._views.values():
            for each in view.watchers:
                each.writer.write_chunk(_BEAT)


@dataclass(frozen=True, slots=True)
class _Timed:
    """Awaits a page that is being made, and counts the CPU seconds that it takes of the
    event loop, without those of others while it waits."""

    making: Awaitable[Response]
    count: Callable[[float], None]

    def __await__(self) -> Generator[Any, None, Response]:
        steps = self.making.__await__()
        error: BaseException | None = None
        while True:
            began = time.thread_time()
            try:
                waits_for = next(steps) if error is None else steps.throw(error)
            except StopIteration as made:
                page: Response = made.value
                return page
            finally:
                self.count(time.thread_time() - began)
            try:
                error = None
                yield waits_for
            except BaseException as thrown:  # cancelled: the page is told
                error = thrown


def _show(view: WatchedView, page: Response) -> None:
    if isinstance(page, WatchedPage) and page.parts:
        view.show(page.parts)
    else:
        view.close(Closing(PAGE_GONE, "nothing on this page changes by itself"))


def _fail(view: WatchedView, error: Exception) -> None:
    """Close the streams of a page that cannot be made, or leave them for the next time.

    A database that does not answer now may answer in a second.
    """
    problem = as_problem(error)
    if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        view.close(Closing(PAGE_GONE, problem.detail))
    elif isinstance(error, StorageError):
        log.warning("watched_page_not_made", error=str(error))
    else:
        log.error("watched_page_failed", exc_info=error)
        view.close(FAILED)


class PageStream(Response):
    """An answer that goes on until the page is closed, or its session ends."""

    def __init__(self, streams: PageStreams, request: WatchRequest) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        if scope["method"] != "HEAD":
            writer = EventWriter(scope)
            with self._streams.watching(self._request, writer):
                await until_over(writer, receive)
        await send({"type": "http.response.body"})


def wants_events(request: Request) -> bool:
    """Whether the client wants to watch the page.

    A browser that opens the page does not name event streams.
    """
    return EVENT_STREAM in request.headers.get("accept", "")
