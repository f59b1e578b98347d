"""From drafts to a `ParsedFeed`: identities, duplicates and the number of entries.

What an entry is read as depends on its own element, and beyond that only on:

- the document: its format, its URL (the base of all references), the namespace of its
  first channel or item (`protocols.feeds.xml`), and the namespaces with their prefixes
  that are declared around the entry;
- ``xml:base`` and ``xml:lang`` of the elements around it (`Scope.within`);
- the head's first ``alternate`` link, or else ``self``, where RSS states no base: it is
  the base of the entry's references (`Scope.within_site`); in Atom only for documents
  without a URL, ``self`` first;
- the head's first ``alternate`` link, which tells whether the entry's own is a page of
  the same site, and with it the base of its texts (`_page`);
- the head's language, for entries without one (`_complete`);
- for entries without an id: the head's ``alternate`` link and the links of all other
  entries without one (`_shared_links`): a link of several identifies none;
- entries before it with the same key: it is left out then (`_entries`);
- its number, beyond `MAX_ENTRIES`.

Nothing else of the head or of other entries may be looked at, neither here nor in the
readers: reading entries singly relies on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from protocols.feeds.drafts import EntryDraft, HeadDraft
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.makers import new_link
from protocols.feeds.references import make_absolute, may_be_relative
from protocols.identity import Identity, identify, key_of_id, key_of_link
from protocols.model import Deletion, Entry, FeedFormat, ParsedFeed
from protocols.quick import changed
from protocols.urls import is_absolute, is_same_site, is_web_url

_MOST_PROBLEMS = 50
_SHARED_BY = 3
"""From so many entries on, an id that they share may be a mistake."""


def assemble(
    format: FeedFormat,
    head: HeadDraft,
    drafts: Sequence[EntryDraft],
    *,
    deletions: Sequence[Deletion] = (),
    written: int = 0,
) -> ParsedFeed:
    """Finish what was read. Of two entries with the same key the first one counts.

    ``written``: so many entries the document has, if no more than `MAX_ENTRIES` of
    them were read.
    """
    problems: list[str] = []
    written = written or len(drafts)
    if written > len(drafts):
        problems.append(f"{written} entries: only the first {MAX_ENTRIES} are kept")
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
    if not drafts:
        return ()
    for draft in drafts:
        _complete(draft, head)
    _discard_shared_id(drafts, problems)
    shared_links = _shared_links(drafts, head.first_link("alternate"))
    entries: dict[str, Entry] = {}
    for draft in drafts:
        identity = _identify(draft, shared_links)
        _make_texts_absolute(draft, head)
        if identity.key in entries:
            problems.append(
                f"a second entry with the id {identity.id[:200]} was left out"
            )
        else:
            entries[identity.key] = draft.finish(identity)
    return tuple(entries.values())


def _complete(draft: EntryDraft, head: HeadDraft) -> None:
    """An id that is an address stands in for a link; the language is inherited."""
    if draft.spares or draft.latitude or draft.longitude:
        draft.settle()
    if not draft.language and not draft.is_unspoken:
        draft.language = head.language
    if not draft.first_link("alternate"):
        address = draft.permalink or draft.first_link("canonical")
        if address:
            draft.add_link(new_link(address))


def _make_texts_absolute(draft: EntryDraft, head: HeadDraft) -> None:
    content, summary = draft.content, draft.summary
    if (content and may_be_relative(content)) or (summary and may_be_relative(summary)):
        base = draft.base if draft.is_base_stated else _page(draft, head) or draft.base
        draft.content = make_absolute(content, base)
        draft.summary = make_absolute(summary, base)


def _page(draft: EntryDraft, head: HeadDraft) -> str:
    """The page that an entry's texts are on: its own, if it is one of the feed's site.

    The links of link blogs lead elsewhere, those of FeedBurner through its own host;
    but what was copied from another feed is on the page it was copied from.
    """
    page = draft.first_link("canonical") or draft.first_link("alternate")
    site = head.first_link("alternate")
    is_here = is_same_site(page, site) or is_same_site(page, draft.base)
    is_elsewhere = is_web_url(site) and not is_here and draft.source is None
    return page if is_web_url(page) and not is_elsewhere else ""


def _discard_shared_id(drafts: Sequence[EntryDraft], problems: list[str]) -> None:
    """An id that most entries have, each with another link, is no entry's id."""
    ids = [draft.id for draft in drafts]
    if len(set(ids)) == len(ids):
        return
    counts = Counter(filter(None, ids))
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
        (key_of_link(link), draft.title, draft.published or draft.updated)
        for draft in drafts
        if not draft.id and (link := draft.first_link("alternate"))
    }
    if not entries:
        return frozenset()
    counts = Counter(link for link, _, _ in entries)
    shared = {key for key, count in counts.items() if count > 1}
    return frozenset(shared | {key_of_link(site)})


def _identify(draft: EntryDraft, shared_links: frozenset[str]) -> Identity:
    if draft.id:
        return _identify_by_id(draft)
    link = draft.first_link("alternate")
    content = draft.content or draft.summary
    return identify(
        link="" if key_of_link(link) in shared_links else link,
        enclosure=draft.first_link("enclosure"),
        title=draft.title,
        date=draft.published or draft.updated,
        content=content.value if content else "",
    )


def _identify_by_id(draft: EntryDraft) -> Identity:
    identity = identify(id=draft.id)
    if draft.source and draft.source.id and not is_absolute(draft.id):
        # Collected from several feeds, and unique only within its own.
        return changed(identity, key=key_of_id(f"{draft.source.id} {draft.id}"))
    return identity
