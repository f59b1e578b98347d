"""From drafts to a `ParsedFeed`: identities, duplicates and the number of entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from protocols.feeds.drafts import EntryDraft, HeadDraft
from protocols.feeds.limits import MAX_ENTRIES
from protocols.identity import Identity, identify, key_of_id, key_of_link
from protocols.model import Deletion, Entry, FeedFormat, Link, ParsedFeed
from protocols.urls import is_absolute

_MOST_PROBLEMS = 50
_SHARED_BY = 3
"""From so many entries on, an id that they share may be a mistake."""


def assemble(
    format: FeedFormat,
    head: HeadDraft,
    drafts: Sequence[EntryDraft],
    *,
    deletions: Sequence[Deletion] = (),
) -> ParsedFeed:
    """Finish what was read. Of two entries with the same key the first one counts."""
    problems: list[str] = []
    written = len(drafts)
    if written > MAX_ENTRIES:
        problems.append(f"{written} entries: only the first {MAX_ENTRIES} are kept")
        drafts = drafts[:MAX_ENTRIES]
    entries = _entries(drafts, head, problems)
    return ParsedFeed(
        format=format,
        feed=head.finish(),
        entries=entries,
        deletions=tuple(deletions),
        hints=head.hints(),
        problems=tuple(problems[:_MOST_PROBLEMS]),
        dropped=written - len(entries),
    )


def _entries(
    drafts: Sequence[EntryDraft], head: HeadDraft, problems: list[str]
) -> tuple[Entry, ...]:
    _discard_shared_id(drafts, problems)
    shared_links = _shared_links(drafts, head.first_link("alternate"))
    entries: dict[str, Entry] = {}
    for draft in drafts:
        _complete(draft, head)
        identity = _identify(draft, shared_links)
        if identity.key in entries:
            problems.append(
                f"a second entry with the id {identity.id[:200]} was left out"
            )
        else:
            entries[identity.key] = draft.finish(identity)
    return tuple(entries.values())


def _complete(draft: EntryDraft, head: HeadDraft) -> None:
    """An id that is an address stands in for a link; the language is inherited."""
    if draft.permalink and not draft.first_link("alternate"):
        draft.add_link(Link(href=draft.permalink))
    draft.language = draft.language or head.language


def _discard_shared_id(drafts: Sequence[EntryDraft], problems: list[str]) -> None:
    """An id that most entries have, each with another link, is no entry's id."""
    counts = Counter(draft.id for draft in drafts if draft.id)
    for id, count in counts.most_common(1):
        of_it = [draft for draft in drafts if draft.id == id]
        links = {draft.first_link("alternate") for draft in of_it}
        if count < _SHARED_BY or 2 * count <= len(drafts) or len(links) < count:
            return
        problems.append(f"the id {id[:200]} of {count} entries was not used")
        for draft in of_it:
            draft.id = ""


def _shared_links(drafts: Sequence[EntryDraft], site: str) -> frozenset[str]:
    """Links that tell no entry from another: the site's, and those of several.

    An entry that is there twice is one: it shares its link with itself.
    """
    entries = {
        (key_of_link(link), draft.title or draft.spare_title, _date(draft))
        for draft in drafts
        if not draft.id and (link := draft.first_link("alternate"))
    }
    counts = Counter(link for link, _, _ in entries)
    shared = {key for key, count in counts.items() if count > 1}
    return frozenset(shared | {key_of_link(site)})


def _identify(draft: EntryDraft, shared_links: frozenset[str]) -> Identity:
    link = "" if draft.id else draft.first_link("alternate")
    content = draft.content or draft.summary or draft.spare_summary
    identity = identify(
        id=draft.id,
        link="" if key_of_link(link) in shared_links else link,
        enclosure=draft.first_link("enclosure"),
        title=draft.title or draft.spare_title,
        date=_date(draft),
        content=content.value if content else "",
    )
    if draft.id and draft.source and draft.source.id and not is_absolute(draft.id):
        # Collected from several feeds, and unique only within its own.
        return replace(identity, key=key_of_id(f"{draft.source.id} {draft.id}"))
    return identity


def _date(draft: EntryDraft) -> datetime | None:
    return draft.published or draft.spare_published or draft.updated
