"""News is cleaned after it is compared and before it is stored."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import PollingRules
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from protocols.feeds import ParseContext
from protocols.model import Deletion, Entry, ParsedFeed, Text
from storage.records import RecordKind
from tests.support.clock import ManualClock
from tests.support.documents import a_document, an_entry
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_targets import a_feed, an_answer
from tests.support.polled import PolledStorage, a_limiter
from tests.support.waiting import eventually


class Marker:
    """A sanitizer that says so, and remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, ...]] = []

    async def sanitize(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        self.given.append(tuple(each.key for each in entries))
        return tuple(replace(each, content=Text(value="clean")) for each in entries)


class WordParser:
    """Words are entries, "key=content"; "-key" is a deletion."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        words = body.decode().split()
        pairs = [word.partition("=") for word in words if word[0] != "-"]
        gone = [word[1:] for word in words if word[0] == "-"]
        return a_document(
            *(an_entry(key, text=content) for key, _, content in pairs),
            deletions=[Deletion(key=key, id=key) for key in gone],
        )


@dataclass
class Scene:
    """A poller of one feed whose documents the test says one by one."""

    sanitizer: Marker | None = field(default_factory=Marker)
    storage: PolledStorage = field(default_factory=PolledStorage)
    clock: ManualClock = field(default_factory=ManualClock)

    async def poll(self, *documents: str) -> None:
        remaining = [*documents]

        def answer(request: FetchRequest) -> Fetched:
            return an_answer(200, remaining.pop(0).encode())

        poller = Poller(
            self.storage,
            FakeFetcher(self.clock, answers=answer),
            WordParser(),
            a_limiter(self.clock),
            self.clock,
            PollingRules(),
            sanitizer=self.sanitizer,
        )
        if not self.storage.known:
            self.storage.put(a_feed(1))
        before = len(self.storage.commits)
        task = asyncio.create_task(poller.run())
        for number in range(1, len(documents) + 1):
            await eventually(lambda n=number: len(self.storage.commits) >= before + n)
            self.clock.advance(86_400)
            if number < len(documents):
                poller.wake()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def contents(self, commit: int) -> dict[str, str | None]:
        """Of the entries that a commit writes; None for a deletion."""
        written = self.storage.commits[commit]
        gone = dict.fromkeys(each.key for each in written.deletions)
        return gone | {each.key: _content(each) for each in written.entries}


def _content(entry: Entry) -> str:
    return entry.content.value if entry.content else ""


async def test_new_and_changed_entries_are_stored_clean() -> None:
    scene = Scene()

    await scene.poll("a=1", "a=1 b=1", "a=2 b=1", "b=1 -a")

    assert scene.sanitizer is not None
    assert scene.sanitizer.given == [("a",), ("b",), ("a",)]
    assert [scene.contents(n) for n in range(4)] == [
        {"a": "clean"},
        {"b": "clean"},
        {"a": "clean"},
        {"a": None},
    ]


async def test_without_a_sanitizer_they_are_stored_as_they_came() -> None:
    scene = Scene(sanitizer=None)

    await scene.poll("a=1", "a=1 b=2")

    assert [scene.contents(0), scene.contents(1)] == [{"a": "1"}, {"b": "2"}]


@pytest.mark.parametrize("is_on_first", [True, False])
async def test_switching_it_on_or_off_makes_no_updates(is_on_first: bool) -> None:
    scene = Scene(sanitizer=Marker() if is_on_first else None)
    await scene.poll("a=1")

    scene.sanitizer = None if is_on_first else Marker()
    await scene.poll("a=1 b=1")

    (record,) = scene.storage.commits[-1].records
    assert record.kind is RecordKind.ENTRIES
    assert [key for key, _ in record.entries] == ["b"]
