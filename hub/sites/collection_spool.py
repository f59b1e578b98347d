"""Collections of sites, kept on disk while they are read, a few at a time.

A collection is read twice: first to its end, since an error anywhere makes all of it
unusable, and then for its pages. Neither holds the collection in memory, and both are
done in slices in a thread. A file that takes all the time of a visit by itself cannot
be used; if other files have left too little time, it waits for the next visit.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import IO, Final

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.site_bounds import COLLECTION_BYTES, COLLECTION_SECONDS, VisitUsage
from hub.core.sites.walk_steps import CollectionPages, Downloaded, ReadPage
from hub.http import ResponseLimits
from hub.http.network_errors import BadAnswer
from hub.ingest.fetcher import FetchRequest
from hub.runtime.offloading import run_in_thread
from protocols.protocol_errors import FeedError, LimitExceeded
from protocols.scp.read.collection_entries import entry_of_page
from protocols.scp.read.collection_heads import HeadRules
from protocols.scp.read.collection_reader import CollectionPage, CollectionReader

SLICE: Final = 128 * 1024
"""Bytes of the file read in a slice; unpacked they may be a hundred times as many."""
MOST_PAGES: Final = 200
MOST_BYTES: Final = 1 << 20
"""Bytes of lines read in one step; the last line may exceed it."""


class OutOfTime(Exception):
    """The time of a visit was over before a file was read."""


class Spool:
    """A file on disk without a name, gone when the process ends, however it ends.

    `write` the answer, `check` it, then `unroll` its pages; `close` it at last.
    ``is_over`` says whether the time to read it is over; it is asked before each slice.
    """

    def __init__(
        self, rules: HeadRules, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self._rules = rules
        self._is_over = is_over
        self._file: IO[bytes] | None = None
        self._pages: Iterator[CollectionPage | None] = iter(())
        self._reader = CollectionReader(rules)
        self._line = 0
        self.size = 0
        self.has_unrolled = False

    def write(self, piece: bytes) -> None:
        """Append bytes of the answer; see `hub.http.BodySink`."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - see `close`
            self._file.write(piece)
        except OSError as error:
            raise BadAnswer(_unkept(error)) from None
        self.size += len(piece)

    async def verify(self, fetched: Fetched) -> Downloaded:
        """Check the answer that was written; return the result. Raises `OutOfTime`."""
        if fetched.error or fetched.status != 200:
            return Downloaded(fetched=fetched)
        try:
            reader = await self.check()
        except FeedError as error:
            return Downloaded(fetched=fetched, error=error)
        except OSError as error:  # what was written may not be on the disk yet
            return Downloaded(fetched=replace(fetched, error=_unkept(error)))
        return Downloaded(
            fetched=fetched,
            head=reader.head,
            lines=reader.lines,
            unknown=reader.unknown,
            warnings=tuple(reader.warnings.lines),
        )

    async def check(self) -> CollectionReader:
        """Read the whole file; return a reader that is at its end.

        Raises a `FeedError`, an `OSError` of the disk, and `OutOfTime`.
        """
        reader = CollectionReader(self._rules)
        pieces = self._read()
        while piece := await run_in_thread(partial(next, pieces, b"")):
            self._hurry()
            await run_in_thread(partial(_pass_over, reader.feed(piece)))
        await run_in_thread(partial(_pass_over, reader.finish()))
        return reader

    async def unroll(self, after: int) -> CollectionPages:
        """Return the next pages after a line; empty if there are no more.

        Raises `OutOfTime` if the time is over before the first of them is found.
        """
        if self._line != after or not after:
            self._reader = CollectionReader(self._rules)
            self._pages = self._read_pages(self._reader)
        try:
            while (
                unrolled := await run_in_thread(partial(self._unroll, after))
            ) is None:
                self._hurry()
        except OSError as error:
            return CollectionPages(pages=(), line=after, error=_unkept(error))
        self._line = unrolled.line
        self.has_unrolled = True
        return unrolled

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # errors of bytes still in memory
                self._file.close()

    def _hurry(self) -> None:
        if self._is_over():
            raise OutOfTime

    def _read(self) -> Iterator[bytes]:
        if self._file is None:  # nothing was written
            return
        self._file.seek(0)
        while piece := self._file.read(SLICE):
            yield piece

    def _read_pages(self, reader: CollectionReader) -> Iterator[CollectionPage | None]:
        """Yield the pages, and None after each slice of work."""
        for piece in self._read():
            yield from reader.feed(piece)
            yield None
        yield from reader.finish()

    def _unroll(self, after: int) -> CollectionPages | None:
        """Return the pages in the next slice; None if it has none."""
        pages: list[ReadPage] = []
        line, reader = after, self._reader
        begun = reader.output
        for page in self._pages:
            if page is None and not pages:
                return None
            if page is not None and page.line <= after:
                begun = reader.output
                continue
            if page is not None:
                pages.append(_read_page(page, reader))
                line = page.line
            if len(pages) >= MOST_PAGES or reader.output - begun >= MOST_BYTES:
                break
        warnings = tuple(reader.warnings.lines)
        return CollectionPages(pages=tuple(pages), line=line, warnings=warnings)


def spooling_request(request: FetchRequest, spool: Spool) -> FetchRequest:
    limits = ResponseLimits(seconds=COLLECTION_SECONDS, body_bytes=COLLECTION_BYTES)
    return replace(request, sink=spool, limits=limits)


def _unkept(error: OSError) -> str:
    return f"cannot be stored: {error.strerror}"


def _pass_over(pages: Iterator[CollectionPage]) -> None:
    for _ in pages:
        pass


def _read_page(page: CollectionPage, reader: CollectionReader) -> ReadPage:
    entry = entry_of_page(page, reader.warnings)
    milliseconds = int(page.modified.timestamp() * 1000)
    return ReadPage(entry=entry, reference=page.url, stamp=milliseconds)


MOST_SPOOLS: Final = 2
"""Most spools at a time: each may take a GiB of disk."""
TURN_SECONDS: Final = 60.0
"""Seconds that a visit waits for a turn before it is put off."""


class Spools:
    """Lets ``most`` spools be open at a time; one that is opened must be closed."""

    def __init__(self, most: int = MOST_SPOOLS, seconds: float = TURN_SECONDS) -> None:
        self._turns = asyncio.Semaphore(most)
        self._seconds = seconds

    async def open(self, rules: HeadRules, is_over: Callable[[], bool]) -> Spool | None:
        """Return a spool; None if no turn comes within the time."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.acquire()
        except TimeoutError:
            return None
        return Spool(rules, is_over)

    def close(self, spool: Spool) -> None:
        """Close a spool and give back its turn. Call it once for each spool."""
        try:
            spool.close()
        finally:
            self._turns.release()


async def verify(
    spool: Spool, fetched: Fetched, spent: VisitUsage
) -> Downloaded | bool:
    """Return the result of `Spool.verify`; False if the visit has too little time left.

    If the file took all the time of the visit, the result has an error instead.
    """
    try:
        return await spool.verify(fetched)
    except OutOfTime:
        is_alone = spent.requests == 1
        return is_alone and Downloaded(fetched=fetched, error=_too_slow(spent))


async def unroll(
    spool: Spool | None, after: int, spent: VisitUsage
) -> CollectionPages | bool:
    """Return the result of `Spool.unroll`; False if the visit has too little time left.

    If the file took all the time of the visit, the result has an error instead.
    """
    if spool is None:
        raise AssertionError("no collection was downloaded")
    try:
        return await spool.unroll(after)
    except OutOfTime:
        is_alone = spent.requests == 1 and not spool.has_unrolled
        error = str(_too_slow(spent))
        return is_alone and CollectionPages(pages=(), line=after, error=error)


def _too_slow(spent: VisitUsage) -> LimitExceeded:
    what = "the time to read the file, in seconds,"
    return LimitExceeded(what, round(spent.bounds.seconds))
