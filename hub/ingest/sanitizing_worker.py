"""The worker that cleans entries: a parse worker whose documents are entries."""

from __future__ import annotations

from msgspec import msgpack

from hub.ingest.parse_worker import serve
from hub.ingest.worker_frames import Task
from protocols.html import sanitize
from protocols.model import Entry, Feed, FeedFormat, ParsedFeed

_entries = msgpack.Decoder(tuple[Entry, ...])


def main() -> None:
    serve(sanitize_entries)


def sanitize_entries(task: Task) -> ParsedFeed:
    """The entries in the task's body, cleaned, in an otherwise empty feed."""
    entries = tuple(map(sanitize, _entries.decode(task.body)))
    return ParsedFeed(format=FeedFormat.ATOM, feed=Feed(), entries=entries)


if __name__ == "__main__":
    main()
