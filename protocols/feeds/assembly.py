"""Turn drafts into a `ParsedFeed`: identities, duplicates and the number of entries.

The result for an entry depends on its own element, and beyond that only on:

- the document: its format, its URL (the base of all references), the namespace of its
  first channel or item (`protocols.feeds.xml`), and the namespaces with their prefixes
  that are declared around the entry;
- ``xml:base`` and ``xml:lang`` of the elements around it (`Scope.within`);
- the head's first ``alternate`` link, or else ``self``, where RSS states no base: it is
  the base of the entry's references (`Scope.within_site`); in Atom only for documents
  without a URL, ``self`` first;
- the head's first ``alternate`` link, which tells whether the entry's own link is a
  page of the same site and therefore the base of the entry's texts (`_page`);
- the head's language, for entries without one (`_complete`), and its authors, in
  formats whose entries inherit them (`_inherit_authors`);
- for entries without an id: the head's ``alternate`` link and the links and enclosures
  of all other entries without an id (`_shared_links`, `_shared_enclosures`), because a
  link or enclosure that several entries have identifies none of them;
- other entries with the same id: the entry is left out, or the id is not used
  (`_judge_shared_ids`);
- earlier entries with the same key: the entry is then left out (`_entries`);
- its number, beyond `MAX_ENTRIES`.

Nothing else of the head or of other entries may be used, neither here nor in the
readers: incremental parsing, which reads single entries, relies on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from protocols.feeds.drafts import EntryDraft, HeadDraft
from protocols.feeds.limits import MAX_ENTRIES
from protocols.feeds.references import make_absolute, may_be_relative
from protocols.identity import Identity, identify, key_of_id, key_of_link
from protocols.model import (
    Deletion,
    Entry,
    FeedFormat,
    IdSource,
    Link,
    ParsedFeed,
    SharedKey,
)
from protocols.urls import is_absolute, is_same_site, is_web_url

_MOST_PROBLEMS = 50
_WITH_IRIS = frozenset({FeedFormat.ATOM, FeedFormat.JSON_FEED})
"""Formats whose ids count as links if they are web URLs, and whose entries inherit the
feed's authors.
"""
_SHARED_BY = 3
"""If at least this many entries share an id, the id may be a mistake."""


def assemble(
    format: FeedFormat,
    head: HeadDraft,
    drafts: Sequence[EntryDraft],
    *,
    deletions: Sequence[Deletion] = (),
    written: int = 0,
) -> ParsedFeed:
    """Build the feed from the drafts.

    Of entries with the same key the first one counts.

    ``written`` is the number of entries in the document, if more than `MAX_ENTRIES`, in
    which case only so many were read; 0 if all were read.
    """
    problems: list[str] = []
    if head.permalink and not head.first_link("alternate"):
        head.add_link(Link(href=head.permalink))
    written = written or len(drafts)
    if written > len(drafts):
        problems.append(f"{written} entries: only the newest {MAX_ENTRIES} are kept")
    entries, shared_keys = _entries(drafts, head, format, problems)
    return ParsedFeed(
        format=format,
        feed=head.finish(),
        entries=entries,
        deletions=tuple(deletions),
        hints=head.hints(),
        problems=tuple(problems[:_MOST_PROBLEMS]),
        dropped=written - len(entries),
        shared_keys=shared_keys,
    )


def _entries(
    drafts: Sequence[EntryDraft],
    head: HeadDraft,
    format: FeedFormat,
    problems: list[str],
) -> tuple[tuple[Entry, ...], tuple[SharedKey, ...]]:
    """Return the entries, and the keys that several of them share
    (`ParsedFeed.shared_keys`).
    """
    if not drafts:
        return (), ()
    for draft in drafts:
        _complete(draft, head, format)
    # RFC 4287 §4.2.1: if an entry has no author, "the atom:author elements of the
    # contained atom:source element are considered to apply", and else those of the
    # feed. JSON Feed 1.1: "If not specified in an item, then the top-level authors, if
    # present, are the authors of the item."
    authors = head.all_authors() if format in _WITH_IRIS else ()
    for draft in drafts:
        if not (draft.authors or draft.creators or draft.spare_author):
            draft.authors = (draft.source and draft.source.authors) or authors
    drafts = _judge_shared_ids(drafts, format, problems)
    nameless = [draft for draft in drafts if not draft.id]
    links: Mapping[str, int] = {}
    enclosures: frozenset[str] = frozenset()
    if nameless:
        links = _shared_links(nameless, head.first_link("alternate"))
        enclosures = _shared_enclosures(nameless, links)
    entries: dict[str, Entry] = {}
    shared_keys = []
    for draft in drafts:
        identity = _identify(draft, links, enclosures)
        _make_texts_absolute(draft, head)
        if identity.key in entries:
            problems.append(_second_entry(identity.id))
            continue
        entries[identity.key] = draft.finish(identity)
        for shared in draft.shared:
            shared_keys.append(SharedKey(identity.key, *shared))
    return tuple(entries.values()), tuple(shared_keys)


def _second_entry(id: str) -> str:
    return f"a second entry with the id {id[:200]} was left out"


def _complete(draft: EntryDraft, head: HeadDraft, format: FeedFormat) -> None:
    """Fill in the entry's language from the head, and a missing link.

    An id that is a web URL stands in for a missing link. In RSS the item itself says
    whether its id is a link.
    """
    if draft.spares or draft.latitude or draft.longitude:
        draft.settle()
    if not draft.language and not draft.is_unspoken:
        draft.language = head.language
    if not draft.first_link("alternate"):
        address = draft.permalink or draft.first_link("canonical")
        if not address and format in _WITH_IRIS and is_web_url(draft.id):
            address = draft.id
        if address:
            draft.add_link(Link(href=address))


def _make_texts_absolute(draft: EntryDraft, head: HeadDraft) -> None:
    content, summary = draft.content, draft.summary
    if (content and may_be_relative(content)) or (summary and may_be_relative(summary)):
        base = draft.base if draft.is_base_stated else _page(draft, head) or draft.base
        draft.content = make_absolute(content, base)
        draft.summary = make_absolute(summary, base)


def _page(draft: EntryDraft, head: HeadDraft) -> str:
    """The page that an entry's texts appear on, which is the base of their references.

    It is the entry's link if that is on the feed's site, else "": link blogs link to
    other sites, and FeedBurner's links lead through its own host. An entry copied from
    another feed appears on the page it was copied from.
    """
    page = draft.first_link("canonical") or draft.first_link("alternate")
    site = head.first_link("alternate")
    is_here = is_same_site(page, site) or is_same_site(page, draft.base)
    is_elsewhere = is_web_url(site) and not is_here and draft.source is None
    return page if is_web_url(page) and not is_elsewhere else ""


def _judge_shared_ids(
    drafts: Sequence[EntryDraft], format: FeedFormat, problems: list[str]
) -> Sequence[EntryDraft]:
    """Clear ids that several entries share, and leave out repeated entries.

    Returns the drafts that remain. Some publishers copy one id into everything they
    write. Entries with one id count as different if they differ in two of link, title
    and date, or if most entries of the document have that id and each of them has a
    different link.
    """
    ids = [draft.id for draft in drafts]
    if len(set(ids)) == len(ids):
        return drafts
    by_key: dict[str, list[int]] = {}
    for number, draft in enumerate(drafts):
        if draft.id:
            by_key.setdefault(_identify_by_id(draft).key, []).append(number)
    left_out: set[int] = set()
    for key, numbers in by_key.items():
        distinct = _distinct(drafts, numbers, format) if len(numbers) > 1 else numbers
        if len(distinct) == 1:
            continue  # the same entry, possibly several times
        id = drafts[numbers[0]].id
        problems.append(f"the id {id[:200]} of {len(distinct)} entries was not used")
        for number in numbers:
            drafts[number].id = ""
            drafts[number].shared = ((key, IdSource.FEED),)
        seconds = set(numbers) - set(distinct)
        problems.extend([_second_entry(id)] * len(seconds))
        left_out |= seconds
    if not left_out:
        return drafts
    return [draft for number, draft in enumerate(drafts) if number not in left_out]


def _distinct(
    drafts: Sequence[EntryDraft], numbers: list[int], format: FeedFormat
) -> list[int]:
    """The first position of each different entry among those with one id."""
    known_pairs: set[tuple[object, ...]] = set()
    firsts, links = [], set()
    for number in numbers:
        draft = drafts[number]
        link = key_of_link(draft.first_link("alternate"))
        title, date = draft.title, draft.published or draft.updated
        # An entry that shares two of link, title and date with an earlier one differs
        # from it in at most one, and is the same entry.
        pairs = {(1, title, date), (2, link, date), (3, link, title)}
        if format is FeedFormat.ATOM:
            # "If multiple atom:entry elements with the same atom:id value appear in an
            # Atom Feed Document, they represent the same entry" (RFC 4287 §4.1.1): so
            # entries with the same link are versions of one entry.
            pairs.add((4, link, None))
        if known_pairs.isdisjoint(pairs):
            firsts.append(number)
        known_pairs |= pairs
        links.add(link)
    is_copied = 2 * len(numbers) > len(drafts) and len(numbers) >= _SHARED_BY
    return numbers if is_copied and len(links) == len(numbers) else firsts


def _shared_links(nameless: Sequence[EntryDraft], site: str) -> dict[str, int]:
    """Keys of links that do not identify an entry, each with the number of its entries.

    These are links that several entries have, and the site's own. An entry that occurs
    twice counts once.
    """
    entries = {
        (key_of_link(link), draft.title, draft.published or draft.updated)
        for draft in nameless
        if (link := draft.first_link("alternate"))
    }
    if not entries:
        return {}
    counts = Counter(link for link, _, _ in entries)
    site_key = key_of_link(site)
    shared = {key: count for key, count in counts.items() if count > 1}
    return {site_key: counts[site_key], **shared}


def _shared_enclosures(
    nameless: Sequence[EntryDraft], shared_links: Mapping[str, int]
) -> frozenset[str]:
    """Keys of enclosures that do not identify an entry: those of several titles."""
    entries = {
        (key_of_link(enclosure), draft.title)
        for draft in nameless
        if (enclosure := draft.first_link("enclosure"))
        and not _own_link(draft, shared_links)
    }
    counts = Counter(enclosure for enclosure, _ in entries)
    return frozenset(key for key, count in counts.items() if count > 1)


def _own_link(draft: EntryDraft, shared_links: Mapping[str, int]) -> str:
    link = draft.first_link("alternate")
    return "" if key_of_link(link) in shared_links else link


def _identify(
    draft: EntryDraft,
    shared_links: Mapping[str, int],
    shared_enclosures: frozenset[str],
) -> Identity:
    if draft.id:
        return _identify_by_id(draft)
    link, enclosure = _own_link(draft, shared_links), draft.first_link("enclosure")
    if not link:
        shared_link = key_of_link(draft.first_link("alternate"))
        if shared_links.get(shared_link, 0) > 1:
            draft.shared = (*draft.shared, (shared_link, IdSource.LINK))
        if key_of_link(enclosure) in shared_enclosures:
            shared_file = key_of_link(enclosure), IdSource.ENCLOSURE
            draft.shared = (*draft.shared, shared_file)
            enclosure = ""
    content = draft.content or draft.summary
    return identify(
        link=link,
        enclosure=enclosure,
        title=draft.title,
        date=draft.published or draft.updated,
        content=content.value if content else "",
    )


def _identify_by_id(draft: EntryDraft) -> Identity:
    identity = identify(id=draft.id)
    if draft.source and draft.source.id and not is_absolute(draft.id):
        # Collected from several feeds: the id is unique only within its source feed.
        return replace(identity, key=key_of_id(f"{draft.source.id} {draft.id}"))
    return identity
