"""Documents to feeds: the easy ones here, the others in a process that may be killed.

A small well-formed document costs a millisecond or two and is parsed at once. A large
one would hold up everything else, and an ill-formed one goes through repairs without
bounds: both go to a worker with limits on its time and memory. The round trip costs
half a millisecond, and a tenth of the time of parsing it here.

One source must not occupy the workers, however often its publisher announces news: a
document that took the whole time limit is not tried again for a while, and all
documents of its owner wait in a line of their own from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import structlog

from hub.ingest.worker_frames import Task, unwrap
from hub.ingest.worker_process import (
    WORKER_MODULE,
    WorkerDied,
    WorkerProcess,
)
from hub.runtime.background import AsyncResource
from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock, SystemClock
from protocols.domains import zone_of
from protocols.feeds import ParseContext, parse
from protocols.model import ParsedFeed
from protocols.protocol_errors import FeedError, LimitExceeded, MalformedDocument
from protocols.scp.read.unpacking import GZIP, ZSTD
from protocols.urls import host_name

REST: Final = 600.0
"""Seconds: sixty times what a worker gives it."""
KEPT: Final = 86_400.0
MOST_KEPT: Final = 10_000


class CostlySources:
    """Sources whose documents took long, or a worker's life, not long ago.

    Times are monotonic seconds. A document without a URL has no source.
    """

    def __init__(self) -> None:
        self._rests: BoundedDict[tuple[str, str], float] = BoundedDict(MOST_KEPT)
        self._zones: BoundedDict[str, float] = BoundedDict(MOST_KEPT)

    def was_slow(self, context: ParseContext, now: float) -> None:
        """A document took long. One of which a path selects a part does not count: the
        path is not the publisher's."""
        zone = _zone(context)
        if zone and not context.selector:
            self._zones[zone] = now + KEPT

    def failed(self, context: ParseContext, now: float) -> None:
        """A document took all the time there is, or the worker's life."""
        self.was_slow(context, now)
        if context.url:
            self._rests[context.url, context.selector] = now + REST

    def is_at_rest(self, context: ParseContext, now: float) -> bool:
        """Whether a document is not to be tried again yet."""
        return now < self._rests.get((context.url, context.selector), now)

    def is_slow(self, context: ParseContext, now: float) -> bool:
        """Whether a document waits in the line of the slow. All parts of documents do:
        a path may take any time there is."""
        return bool(context.selector) or now < self._zones.get(_zone(context), now)


def _zone(context: ParseContext) -> str:
    host = host_name(context.url)
    return zone_of(host) if host else ""


class WaitingLine:
    """Documents that wait for a worker, in the order they came.

    ``workers`` documents have their turn at a time. At most ``most`` wait, for at most
    ``seconds``, with at most ``most_bytes`` together; a single one may have more.
    """

    def __init__(
        self,
        *,
        workers: int,
        most: int,
        most_bytes: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self._turns = asyncio.Semaphore(workers)
        self._most = most
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._waiting = 0
        self._bytes = 0

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Entered when the turn has come. Raises `LimitExceeded` if too many wait, or
        it does not come in time."""
        await self._wait(size)
        try:
            yield
        finally:
            self._turns.release()

    async def _wait(self, size: int) -> None:
        if self._waiting >= self._most:
            raise LimitExceeded("documents waiting to be parsed", self._most)
        most_bytes = self._most_bytes
        if most_bytes and self._waiting and self._bytes + size > most_bytes:
            raise LimitExceeded("bytes of documents waiting to be parsed", most_bytes)
        self._waiting += 1
        self._bytes += size
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.acquire()
        except TimeoutError:
            what = "the seconds to wait until the document is parsed"
            raise LimitExceeded(what, round(self._seconds or 0)) from None
        finally:
            self._waiting -= 1
            self._bytes -= size


log = structlog.get_logger(__name__)

INLINE_BYTES = 64 * 1024
"""Such a document is read in 2 to 4 ms."""
INLINE_TAGS = 4_000
"""As many as a document of that size has; one of nothing else would take 200 ms."""
_COSTLY = ((b"<", INLINE_TAGS), (b"=", INLINE_TAGS), (b"{", INLINE_TAGS // 2))
"""Tags, attributes (an element of nothing else takes squared time), objects of JSON."""
SLOW_BYTES = 64 << 20
"""Of documents that wait in the line of the slow."""
SLOW_WAIT = 60.0
"""Seconds in that line, where one document may take ten: a waiting document holds a
slot of the poller."""
SLOW_SHARE = 0.5
"""Of the time that a worker gives a document: with so much of it the source is slow."""
_PACKED = (GZIP, ZSTD)
"""Such a document is larger than it seems."""


class Parser(Protocol):
    """The seam behind which documents become feeds."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        """Raises a `protocols.protocol_errors.FeedError`."""
        ...


class WorkerParser(AsyncResource):
    """A `Parser` with at most ``workers`` worker processes, started when needed.

    A worker gets ``seconds`` for a document, its own start not counted, and is then
    killed; after ``documents`` of them it is replaced, for whatever memory it may have
    lost. At most ``waiting`` documents wait for a worker, a further one is refused.
    Parts of documents, and sources that were slow, have one worker more and a line of
    their own.
    ``read`` is the strict parser, ``module`` the worker's program. Use it as an async
    context manager; no process outlives it.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        seconds: float = 10.0,
        documents: int = 500,
        waiting: int = 256,
        inline_bytes: int = INLINE_BYTES,
        module: str = WORKER_MODULE,
        read: Callable[[bytes, ParseContext], ParsedFeed] = parse,
        clock: Clock | None = None,
    ) -> None:
        self._line = WaitingLine(workers=workers, most=waiting)
        self._slow_line = WaitingLine(
            workers=1, most=waiting, most_bytes=SLOW_BYTES, seconds=SLOW_WAIT
        )
        self._costly = CostlySources()
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._documents = documents
        self._inline_bytes = inline_bytes
        self._module = module
        self._read = read
        self._idle: list[WorkerProcess] = []
        self._killed: list[WorkerProcess] = []

    async def aclose(self) -> None:
        """Kill the workers; see `AsyncResource`."""
        while self._idle:
            self._retire(self._idle.pop())
        await self._reap_killed()

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        """See `Parser`."""
        is_large = len(body) > self._inline_bytes or any(
            body.count(sign) > most for sign, most in _COSTLY
        )
        if is_large or body.startswith(_PACKED) or context.selector:
            return await self._parse_in_worker(Task(body, context))
        try:
            return self._read(body, context)
        except MalformedDocument:
            pass
        except FeedError:
            raise
        except Exception:  # whatever a document does to a parser is that feed's error
            log.exception("parser_failed", host=host_name(context.url))
        return await self._parse_in_worker(Task(body, context, is_malformed=True))

    async def _parse_in_worker(self, task: Task) -> ParsedFeed:
        if not self._is_slow(task):
            async with self._line.turn(len(task.body)):
                if not self._is_slow(task):  # nor was another of its kind meanwhile
                    return await self._ask_worker(task)
        async with self._slow_line.turn(len(task.body)):
            if self._costly.is_at_rest(task.context, self._clock.monotonic()):
                raise self._out_of_time()
            return await self._ask_worker(task)

    def _is_slow(self, task: Task) -> bool:
        return self._costly.is_slow(task.context, self._clock.monotonic())

    async def _ask_worker(self, task: Task) -> ParsedFeed:
        worker = await self._take_worker()
        has_idled = worker.documents > 0
        with suppress(WorkerDied):
            return await self._ask(worker, task)
        if has_idled:  # it may have died of something else, unnoticed yet
            with suppress(WorkerDied):
                return await self._ask(await self._start_worker(), task)
        self._costly.failed(task.context, self._clock.monotonic())
        raise MalformedDocument("the parser crashed on this document")

    async def _ask(self, worker: WorkerProcess, task: Task) -> ParsedFeed:
        """Raises `WorkerDied`, and what `WorkerParser.parse` does."""
        is_done = False
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                result = await worker.ask(task)
            is_done = True
        except TimeoutError:
            log.warning(
                "parse_worker_killed", host=host_name(task.context.url), pid=worker.pid
            )
            self._costly.failed(task.context, self._clock.monotonic())
            raise self._out_of_time() from None
        except WorkerDied:
            log.warning(
                "parse_worker_died", host=host_name(task.context.url), pid=worker.pid
            )
            raise
        finally:
            now = self._clock.monotonic()
            if now - begun >= self._seconds * SLOW_SHARE:
                self._costly.was_slow(task.context, now)
            if is_done and worker.documents < self._documents:
                self._idle.append(worker)
            else:
                self._retire(worker)
        return unwrap(result)

    def _out_of_time(self) -> LimitExceeded:
        what = "the time to parse the document, in seconds,"
        return LimitExceeded(what, round(self._seconds))

    async def _take_worker(self) -> WorkerProcess:
        await self._reap_killed()
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            self._retire(worker)
        return await self._start_worker()

    async def _start_worker(self) -> WorkerProcess:
        worker = await WorkerProcess.start(self._module)
        try:
            await worker.wait_ready()
        except WorkerDied:
            self._retire(worker)
            log.error("parse_worker_not_started", pid=worker.pid)
            raise MalformedDocument("no parser could be started for it") from None
        except BaseException:
            self._retire(worker)
            raise
        return worker

    async def _reap_killed(self) -> None:
        while self._killed:
            worker = self._killed.pop()
            try:
                await worker.wait()
            except asyncio.CancelledError:
                self._killed.append(worker)
                raise

    def _retire(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._killed.append(worker)
