"""Documents to feeds: easy ones are parsed here, others in a process that may be
killed.

A small well-formed document costs a millisecond or two and is parsed at once. A large
document would hold up everything else, and an ill-formed one goes through repairs that
are not bounded. Both go to a worker whose time and memory are limited. The round trip
to it costs half a millisecond, plus a tenth of the time that parsing takes here.

One source must not occupy the workers, however often its publisher announces news. A
document that used up the whole time limit is not tried again for a while, and all
documents of its owner wait in a line of their own from then on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, Protocol

import structlog
from lxml import etree

from hub.core.fetched import NOT_PARSED, Fetched, ParseOutcome, body_hash
from hub.core.news.fetch_commit import is_known_body
from hub.core.news.known_slices import READER_BYTES, known_slices
from hub.ingest.worker_frames import Task, unwrap
from hub.ingest.worker_process import (
    WORKER_MODULE,
    WorkerDied,
    WorkerProcess,
)
from hub.runtime.background import AsyncResource
from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock, SystemClock
from hub.runtime.metrics import DocumentReading, Metrics
from hub.runtime.offloading import run_by_size, run_in_thread
from protocols.domains import zone_of
from protocols.feeds import ParseContext, parse
from protocols.model import ParsedFeed
from protocols.protocol_errors import FeedError, LimitExceeded, MalformedDocument
from protocols.scp.read.unpacking import GZIP, ZSTD
from protocols.urls import host_name, selector_of
from storage.records import FetchTarget

REST: Final = 600.0
"""Seconds: sixty times what a worker gives a document."""
KEPT: Final = 86_400.0
MOST_KEPT: Final = 10_000


class CostlySources:
    """Sources whose documents recently took long, or crashed a worker.

    Times are monotonic seconds. A document without a URL has no source.
    """

    def __init__(self) -> None:
        self._rests: BoundedDict[tuple[str, str], float] = BoundedDict(MOST_KEPT)
        self._zones: BoundedDict[str, float] = BoundedDict(MOST_KEPT)

    def was_slow(self, context: ParseContext, now: float) -> None:
        """Note that a document took long. It does not count if a path selects a part of
        it, because the path is not the publisher's."""
        zone = _zone(context)
        if zone and not context.selector:
            self._zones[zone] = now + KEPT

    def failed(self, context: ParseContext, now: float) -> None:
        """Note that a document used up the whole time limit, or crashed the worker."""
        self.was_slow(context, now)
        if context.url:
            self._rests[context.url, context.selector] = now + REST

    def is_at_rest(self, context: ParseContext, now: float) -> bool:
        """Whether a document is not to be tried again yet."""
        return now < self._rests.get((context.url, context.selector), now)

    def is_slow(self, context: ParseContext, now: float) -> bool:
        """Whether a document waits in the line of slow documents. All parts of
        documents do, because a path may take any amount of time."""
        return bool(context.selector) or now < self._zones.get(_zone(context), now)


def _zone(context: ParseContext) -> str:
    host = host_name(context.url)
    return zone_of(host) if host else ""


class WaitingLine:
    """Documents that wait for a worker, in the order in which they came.

    ``workers`` documents have their turn at a time. At most ``most`` documents wait,
    for at most ``seconds``, with at most ``most_bytes`` together; if nothing else
    waits, a document may be larger than that.
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
        """Entered when the document's turn has come. Raises `LimitExceeded` if too many
        wait, or the turn does not come in time."""
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
"""A document of this size is read in 2 to 4 ms."""
INLINE_TAGS = 4_000
"""As many as a document of `INLINE_BYTES` has. If it were nothing but tags, it would
take 200 ms."""
_COSTLY = ((b"<", INLINE_TAGS), (b"=", INLINE_TAGS), (b"{", INLINE_TAGS // 2))
"""How many tags, attributes and JSON objects may be parsed inline. An element of
nothing but attributes takes quadratic time."""
SLOW_BYTES = 64 << 20
"""Bytes of the documents that wait in the line of slow ones."""
SLOW_WAIT = 60.0
"""Seconds that a document waits in that line, where one document may take ten; while it
waits it holds a slot of the poller."""
SLOW_SHARE = 0.5
"""The share of a worker's time limit from which on a document makes its source slow."""
_PACKED = (GZIP, ZSTD)
"""What a packed document begins with: it is larger than it seems."""


class Parser(Protocol):
    """The interface behind which documents become feeds."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        """Parse a document; raises a `protocols.protocol_errors.FeedError`."""
        ...


class WorkerParser(AsyncResource):
    """A `Parser` with at most ``workers`` worker processes, started when needed.

    A worker gets ``seconds`` for a document, its own start not counted, and is then
    killed. After ``documents`` of them it is replaced, because it may have leaked
    memory. At most ``waiting`` documents wait for a worker; any more are refused. Parts
    of documents, and documents of slow sources, have one additional worker and a line
    of their own.

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
        except Exception:  # whatever goes wrong is an error of that feed
            log.exception("parser_failed", host=host_name(context.url))
        return await self._parse_in_worker(Task(body, context, is_malformed=True))

    async def _parse_in_worker(self, task: Task) -> ParsedFeed:
        if not self._is_slow(task):
            async with self._line.turn(len(task.body)):
                if not self._is_slow(task):  # it may be by now
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
        if has_idled:  # an idle worker may have died unnoticed, for another reason
            with suppress(WorkerDied):
                return await self._ask(await self._start_worker(), task)
        self._costly.failed(task.context, self._clock.monotonic())
        raise MalformedDocument("the parser crashed on this document")

    async def _ask(self, worker: WorkerProcess, task: Task) -> ParsedFeed:
        """Raises `WorkerDied`, and whatever `WorkerParser.parse` raises."""
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


# --- reading answers -----------------------------------------------------------------


@cache
def reader_name() -> bytes:
    """The name of this version of the program as a reader of documents. It differs
    after an upgrade, so that each feed is then read whole once."""
    return name_of(files("protocols"), files("hub.core"))


def name_of(*code: Traversable) -> bytes:
    """A name that changes with the code, and with the versions of Python and
    libxml2."""
    versions = (sys.version_info[:2], etree.LXML_VERSION, etree.LIBXML_VERSION)
    name = blake2b(repr(versions).encode(), digest_size=READER_BYTES)
    for folder in code:
        _add(name, folder)
    return name.digest()


def _add(name: blake2b, folder: Traversable) -> None:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            _add(name, each)
        elif each.name.endswith(".py"):
            source = each.read_bytes()
            name.update(f"{each.name} {len(source)} ".encode() + source)


_LARGE_SLICES = 16 * 1024  # about six hundred entries


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReader:
    """Parses documents. ``name`` is the program's, for `hub.core.news.known_slices`."""

    parser: Parser
    clock: Clock
    metrics: Metrics
    name: bytes = field(default_factory=reader_name)

    async def read(self, target: FetchTarget, fetched: Fetched) -> ParseOutcome:
        """Parse a whole document (status 200), unless its bytes are those of a known
        feed."""
        if fetched.error or fetched.status != 200:
            return NOT_PARSED
        hashing = partial(body_hash, fetched.body)
        count = self.metrics.documents.add
        digest = await run_by_size(hashing, len(fetched.body))
        if is_known_body(target.feed.polling, digest):
            count(DocumentReading.UNCHANGED)
            return NOT_PARSED
        knowing = partial(known_slices, target.slices, target.seen, self.name)
        is_large = len(target.slices) > _LARGE_SLICES
        context = ParseContext(
            url=fetched.url,
            content_type=fetched.content_type,
            now=self.clock.now(),
            known=await run_in_thread(knowing) if is_large else knowing(),
            selector=selector_of(target.feed.url),
        )
        try:
            feed = await self.parser.parse(fetched.body, context)
        except FeedError as error:
            count(DocumentReading.UNREADABLE)
            return ParseOutcome(error=error, body_hash=digest)
        count(DocumentReading.INCREMENTAL if feed.is_partial else DocumentReading.FULL)
        return ParseOutcome(feed=feed, body_hash=digest)
