"""What is gone of a source that lists all it has, and when that is believed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from hub.core.fetched import ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.inventory import compare_inventory
from hub.core.schedule.poll_period import PollingRules
from protocols.feeds import ParseContext, parse
from protocols.feeds.limits import MAX_ENTRIES
from protocols.model import ParsedFeed
from storage.records import FetchCommit, FetchTarget, PollReason, RecordKind
from tests.support.creator import NOW, URL, a_creator_feed, an_item, read
from tests.support.documents import a_document, entries_named
from tests.support.fetch_targets import a_target, an_answer


class Hub:
    """One feed, fetched again and again; ``told`` are kinds and keys of its records."""

    def __init__(self, **rules: bool) -> None:
        self.target: FetchTarget = a_target()
        self.rules = PollingRules(**rules)  # type: ignore[arg-type]
        self.commit: FetchCommit

    def fetch(self, document: Any) -> list[tuple[str, list[str]]]:
        body = (
            document if isinstance(document, bytes) else json.dumps(document).encode()
        )
        context = ParseContext(url=URL, now=NOW, known=b"")
        answer = an_answer(body=body, url=URL, at=NOW, etag='"1"')
        self.commit = commit = decide(
            Decision(
                target=self.target,
                fetched=answer,
                understood=ParseOutcome(feed=parse(body, context)),
                rules=self.rules,
                jitter=0.0,
                reason=PollReason.PLANNED,
            )
        )
        feed = replace(
            self.target.feed, polling=commit.polling, format=commit.format or ""
        )
        self.target = replace(
            self.target,
            feed=feed,
            seen=commit.seen or self.target.seen,
            inventory=commit.inventory or self.target.inventory,
        )
        return [
            (record.kind.value, [key.rpartition("/")[2] for key, _ in record.entries])
            for record in commit.records
            if record.kind is not RecordKind.BASELINE
        ]


def test_an_item_that_a_complete_list_lacks_is_deleted_once() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))

    assert hub.fetch(a_creator_feed("a", "c")) == [("deleted", ["b"])]
    assert hub.fetch(a_creator_feed("a", "c")) == []


def test_a_deleted_item_that_returns_is_an_update() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))
    hub.fetch(a_creator_feed("a", "c"))

    assert hub.fetch(a_creator_feed("a", "b", "c")) == [("updated", ["b"])]
    assert hub.fetch(a_creator_feed("a", "c")) == [("deleted", ["b"])]


def test_an_item_that_became_invalid_stays_as_it_was() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))

    assert hub.fetch(a_creator_feed("a", an_item("b", url="b"), "c")) == []
    assert hub.commit.polling.problems == (
        "/items/1/url: expected an absolute http or https URL",
    )
    assert "1 left out" in hub.commit.polling.message
    assert hub.fetch(a_creator_feed("a", "c")) == [("deleted", ["b"])]


def test_nothing_is_deleted_by_a_list_with_an_item_that_may_be_any() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))

    assert hub.fetch(a_creator_feed("a", "c", an_item(""))) == []


@pytest.mark.parametrize("left", [(), ("a",)])
def test_a_list_that_lost_most_is_believed_when_it_says_so_again(
    left: tuple[str, ...],
) -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))

    assert hub.fetch(a_creator_feed(*left)) == []
    assert hub.commit.polling.body_hash == ""
    assert hub.commit.polling.validators is None
    ((kind, gone),) = hub.fetch(a_creator_feed(*left))
    assert (kind, sorted(gone)) == ("deleted", sorted({"a", "b", "c"} - set(left)))
    assert hub.commit.polling.validators is not None


def test_a_list_that_recovers_lost_nothing() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b", "c"))
    hub.fetch(a_creator_feed())

    assert hub.fetch(a_creator_feed("a", "b", "c")) == []
    assert hub.fetch(a_creator_feed()) == []


def test_an_entry_keeps_the_id_it_was_first_shown_under() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a", "b"))

    moved = an_item("a", url="https://new.example/a")
    assert hub.fetch(a_creator_feed(moved, "b")) == [("updated", ["a"])]

    (entry,) = hub.commit.entries
    assert entry.id == "https://mara.example/posts/a"
    assert entry.links[0].href == "https://new.example/a"


def test_a_feed_that_becomes_a_creators_sends_nothing_twice_and_back() -> None:
    items = "".join(
        f"<item><guid>https://mara.example/posts/{slug}</guid><title>On {slug}</title>"
        f"<link>https://mara.example/posts/{slug}</link></item>"
        for slug in ("a", "b", "c")
    )
    rss = f"<rss version='2.0'><channel>{items}</channel></rss>".encode()
    hub = Hub()
    hub.fetch(rss)

    assert all(
        kind == "updated" for kind, _ in hub.fetch(a_creator_feed("a", "b", "c"))
    )
    assert all(kind == "updated" for kind, _ in hub.fetch(rss))
    assert hub.fetch(a_creator_feed("a", "b", "c", "d"))[-1] == ("entries", ["d"])


def test_items_that_are_not_to_be_found_are_told_and_marked() -> None:
    hub = Hub()
    hub.fetch(a_creator_feed("a"))

    hidden = an_item("b", discoverable=False)
    assert hub.fetch(a_creator_feed("a", hidden)) == [("entries", ["b"])]
    (entry,) = hub.commit.entries
    assert entry.unlisted
    assert hub.fetch(a_creator_feed("a", "b")) == [("updated", ["b"])]
    (entry,) = hub.commit.entries
    assert not entry.unlisted


def test_items_that_are_not_to_be_found_may_be_withheld_from_everybody() -> None:
    hub = Hub(tells_unlisted=False)
    hub.fetch(a_creator_feed("a"))

    hidden = an_item("b", discoverable=False)
    assert hub.fetch(a_creator_feed("a", hidden)) == []
    quiet = {"handle": "mara", "language": "en", "discoverable": False}
    assert hub.fetch(a_creator_feed("a", "c", hidden, creator=quiet)) == []
    assert hub.commit.polling.unlisted
    assert hub.fetch(a_creator_feed("a", "c", hidden, "d")) == [("entries", ["d"])]
    assert not hub.commit.polling.unlisted


def test_the_last_valid_document_is_kept_as_it_came() -> None:
    hub = Hub()
    document = json.dumps(a_creator_feed("a", mood=1)).encode()

    hub.fetch(document)

    assert hub.commit.raw is not None
    assert hub.commit.raw.body == document
    assert hub.commit.raw.content_type == "application/json"


def test_what_is_gone_is_remembered_but_not_without_end() -> None:
    inventory = b""
    for first in range(0, 2 * MAX_ENTRIES + 2, MAX_ENTRIES):
        document = read(a_creator_feed(*(f"s{first + n}" for n in range(MAX_ENTRIES))))
        inventory = compare_inventory(document, inventory).inventory or inventory
        inventory = compare_inventory(document, inventory).inventory or inventory

    moved = an_item("s0", url="https://new.example/")
    (entry,) = compare_inventory(
        read(a_creator_feed(moved)), inventory
    ).document.entries
    assert entry.id == "https://new.example/"
    moved = an_item(f"s{2 * MAX_ENTRIES - 1}", url="https://new.example/")
    (entry,) = compare_inventory(
        read(a_creator_feed(moved)), inventory
    ).document.entries
    assert entry.id != "https://new.example/"


def test_other_formats_have_no_inventory() -> None:
    document: ParsedFeed = a_document(*entries_named("a"))

    stock = compare_inventory(document, b"")

    assert (stock.document, stock.inventory) == (document, None)
