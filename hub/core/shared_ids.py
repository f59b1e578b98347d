"""Entries that come alone under an id that several have shared.

Some publishers give one id to all they write. Where a document shows two of them, the
parser takes the id from both (`protocols.feeds.assembly`): their links identify them,
or else their enclosures, or else what they say. A document with one of them does not
tell by itself that the id means nothing. So the seen-set remembers what was shared, and
an entry that comes alone is identified here as if others stood beside it. Links and
enclosures that entries without an id have shared are treated alike.

Under an id that was never shared, a new title with a new link is an edit.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from hub.core.seen import mark_of
from protocols.identity import Identity, fingerprint, identify, key_of_link
from protocols.model import Entry, IdSource, Link, ParsedFeed, SharedKey


def without_shared_ids(document: ParsedFeed, marks: Container[int]) -> ParsedFeed:
    """The document, with another identity for each entry whose own was shared.

    ``marks`` are of the feed's seen-set (`hub.core.seen.shared_marks`).
    """
    own = [
        each
        for each in document.entries
        if mark_of(each.id_source, each.key) not in marks
    ]
    if len(own) == len(document.entries):
        return document
    passed_over = document.outline.keys if document.outline else ()
    taken = {
        fingerprint(key_of_link(_address(document.feed.links, "alternate"))),
        *passed_over,
        *(fingerprint(each.key) for each in own),
    }
    entries: list[Entry] = []
    shared: list[SharedKey] = []
    for entry in document.entries:
        if mark_of(entry.id_source, entry.key) in marks:
            identity = _identify(entry, marks, taken)
            taken.add(fingerprint(identity.key))
            shared.append(SharedKey(identity.key, entry.key, entry.id_source))
            entry = replace(
                entry, key=identity.key, id=identity.id, id_source=identity.source
            )
        entries.append(entry)
    return replace(
        document,
        entries=tuple(entries),
        shared_keys=document.shared_keys + tuple(shared),
    )


def _identify(entry: Entry, marks: Container[int], taken: Container[int]) -> Identity:
    """By what was neither shared before nor identifies another entry."""

    def own(relation: str, source: IdSource) -> str:
        url = _address(entry.links, relation)
        key = key_of_link(url)
        is_free = mark_of(source, key) not in marks and fingerprint(key) not in taken
        return url if is_free else ""

    content = entry.content or entry.summary
    return identify(
        link=own("alternate", IdSource.LINK),
        enclosure=own("enclosure", IdSource.ENCLOSURE),
        title=entry.title,
        date=entry.published or entry.updated,
        content=content.value if content else "",
    )


def _address(links: tuple[Link, ...], relation: str) -> str:
    return next((link.href for link in links if link.rel == relation), "")
