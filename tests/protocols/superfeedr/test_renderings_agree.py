"""Whatever an entry says, Atom and JSON say the same of it.

The Atom is read back and turned into JSON by the schema's mapping; that is then the
JSON that was rendered, key by key, but for what only one of them can say.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given

from protocols.model import Deletion, Entry, Feed, Notification, Status, Text
from protocols.superfeedr.atom_notifications import render_atom
from protocols.superfeedr.json_notifications import render_json
from tests.protocols.superfeedr.atom_items import deletion_of, head_of, item_of
from tests.support.entries import ENTRIES, LONG, NOTIFICATIONS
from tests.support.golden import find, read_xml
from tests.support.superfeedr_example import EXAMPLE

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
OF_JSON_ONLY = frozenset(
    [
        *("authors", "contributors", "categories", "verbs", "objectTypes", "objects"),
        *("rights", "summaryType", "contentType", "language", "generator"),
        *("icon", "logo"),
    ]
)
"""Extensions for which Atom has elements."""


def notification_of(entry: Entry, **changes: Any) -> Notification:
    return Notification(
        topic="https://site.example/feed",
        hub="https://hub.example/hub",
        status=Status(),
        feed=Feed(updated=datetime(2025, 1, 1, tzinfo=UTC)),
        entries=(entry,),
        **changes,
    )


def rendered(notification: Notification) -> tuple[Any, Any]:
    root = read_xml(render_atom(notification))
    return root, orjson.loads(render_json(notification))


def sayable(value: Any) -> Any:
    """As XML can carry it: without the characters it forbids, and what they leave."""
    if isinstance(value, str):
        return FORBIDDEN.sub("", value)
    if isinstance(value, list):
        return [sayable(each) for each in value]
    if isinstance(value, dict):
        pairs = ((sayable(name), sayable(each)) for name, each in value.items())
        return dict(pairs)
    return value


def without_emptied(value: Any) -> Any:
    """Without what is an empty text, since XML could not carry a character of it."""
    if isinstance(value, list):
        return [without_emptied(each) for each in value]
    if isinstance(value, dict):
        kept = {key: without_emptied(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in ("", {}, [])}
    return value


def same(ours: Any, theirs: Any) -> bool:
    return bool(without_emptied(sayable(ours)) == without_emptied(sayable(theirs)))


def has_own_names(entry: Entry) -> bool:
    """Whether no extension of a feed is called as one of ours."""
    ours = {*map(sayable, entry.extensions)}
    source = {*map(sayable, entry.source.extensions)} if entry.source else set()
    return not OF_JSON_ONLY & (ours | source)


@given(ENTRIES.filter(has_own_names))
def test_an_entry_is_the_same_in_both(entry: Entry) -> None:
    root, document = rendered(notification_of(entry))
    [element] = find(root, "atom:entry")
    [item] = document["items"]
    from_atom = item_of(element)
    if "updated" not in item:  # where Atom wants a date, it has the document's
        del from_atom["updated"]
    assert without_emptied(sayable(from_atom)) == without_emptied(sayable(item))


@given(NOTIFICATIONS)
def test_a_head_and_its_status_are_the_same_in_both(notification: Notification) -> None:
    root, document = rendered(notification)
    document.pop("items", None)
    from_atom = head_of(root)
    if document["updated"] is None:
        del document["updated"], from_atom["updated"]
    if not document["id"]:
        assert from_atom.pop("id") == notification.topic
    if not notification.feed.authors:  # Atom may want one, and the feed stands in
        from_atom.get("extensions", {}).pop("authors", None)
    if not OF_JSON_ONLY & {*map(sayable, notification.feed.extensions)}:
        assert same(from_atom, document)


@given(NOTIFICATIONS)
def test_there_are_as_many_entries_and_deletions_in_both(
    notification: Notification,
) -> None:
    root, document = rendered(notification)
    items = document.get("items", [])
    deletions = [deletion_of(each) for each in find(root, "at:deleted-entry")]
    entries = len(find(root, "atom:entry"))
    assert len(items) == entries + len(deletions)
    for deletion, item in zip(deletions, items[entries:], strict=True):
        assert same({**deletion, **item}, deletion)


def test_the_example_is_the_same_in_both() -> None:
    root, document = rendered(EXAMPLE)
    items = [item_of(each) for each in find(root, "atom:entry")]
    items += [deletion_of(each) for each in find(root, "at:deleted-entry")]
    assert {**head_of(root), "items": items} == document


@given(LONG)
def test_whatever_claims_to_be_xhtml_leaves_the_document_well_formed(
    markup: str,
) -> None:
    text = Text(value=markup, type="xhtml")
    root, document = rendered(notification_of(Entry(key="1", id="1", content=text)))
    assert document["items"][0]["content"] == markup
    assert len(find(root, "atom:entry/atom:content")) == 1


def test_a_deletion_without_a_time_has_the_documents_in_atom() -> None:
    gone = (Deletion(key="2", id="2"),)
    root, document = rendered(notification_of(Entry(key="1", id="1"), deletions=gone))
    [deletion] = [deletion_of(each) for each in find(root, "at:deleted-entry")]
    assert deletion == {"updated": 1_735_689_600, **document["items"][1]}
