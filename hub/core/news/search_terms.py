"""The words and places by which entries are found, from the subject of track queries.

The index finds entries that may match; the query itself decides. So conditions that an
index cannot check (case, negations, ranks) may be left out of the lookup.
"""

from __future__ import annotations

from hashlib import blake2b

from msgspec.structs import replace

from protocols.model import Category, Entry, Feed
from protocols.track import Query, Subject, subject_of
from protocols.track.query import (
    All,
    AnyOf,
    LinkTo,
    Member,
    Popularity,
    SiteTerm,
    Words,
)
from protocols.track.subject import language_key, link_key, site_key
from protocols.track.words import folded
from storage.records import (
    Both,
    Either,
    EntryId,
    FeedStatistics,
    Phrase,
    PlaceTerm,
    SearchDocument,
    StoredFeed,
    Term,
)

EVERYWHERE = PlaceTerm("any")
"""A place that all entries have."""


def searched_subject(
    entry: Entry, head: Feed, feed: StoredFeed, statistics: FeedStatistics | None = None
) -> Subject:
    """The entry as track queries see it, and its authors' names as well; ``statistics``
    is the feed's, None before its first maintenance."""
    names = tuple(Category(term=author.name) for author in entry.authors)
    return subject_of(
        replace(entry, categories=entry.categories + names),
        head,
        feed_url=feed.url,
        popularity=statistics.popularity if statistics else 0.0,
        porn_rank=(statistics.porn_rank or 0.0) if statistics else 0.0,
        bozo_rank=feed.polling.bozo_rank,
    )


def document_of(entry_id: EntryId, subject: Subject) -> SearchDocument:
    keys = {site_key(host) for host in subject.hosts}
    keys |= {link_key(place) for place in subject.links}
    if subject.language:
        keys.add(language_key(subject.language))
    places = (EVERYWHERE.name, *sorted(_place(key).name for key in keys))
    words = " ".join(subject.text.split())
    return SearchDocument(entry_id=entry_id, words=words, places=places)


def term_of(query: Query) -> Term:
    """A term that all matches of the query have; other entries may have it as well."""
    return _term(query.root) or EVERYWHERE


def _term(member: Member) -> Term | None:
    """A term that all matches have; None: every entry may match."""
    if isinstance(member, All):
        terms = [term for each in member.members if (term := _term(each))]
        return _joined(Both, terms)
    if isinstance(member, AnyOf):
        choices = [_term(each) for each in member.members]
        wanted = [each for each in choices if each is not None]
        return _joined(Either, wanted) if len(wanted) == len(choices) else None
    if member.is_negated or isinstance(member, Popularity):
        return None
    if isinstance(member, Words):
        return Phrase(tuple(map(folded, member.words)))
    if isinstance(member, SiteTerm):
        return _place(site_key(member.host))
    if isinstance(member, LinkTo):
        return _place(link_key(member.place))
    return _place(language_key(member.code))


def _joined(kind: type[Both | Either], terms: list[Term]) -> Term | None:
    if len(terms) < 2:
        return terms[0] if terms else None
    return kind(tuple(terms))


def _place(key: str) -> PlaceTerm:
    """The place for a key: a short name without blanks, as the index holds all of them.
    If two keys share a name, an entry is looked at in vain."""
    return PlaceTerm("x" + blake2b(key.encode(), digest_size=5).hexdigest())
