"""Heads and entries while they are being read, before they become values.

A value from an extension module, for a field that the format has an element for, is
spare: it counts only if that element is missing, whatever order both come in. A value
that then does not count, and a second value of a single field, becomes an extension.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from protocols.dates import parse_date
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import Groups, keep_element, keep_value
from protocols.feeds.scope import Scope
from protocols.identity import Identity
from protocols.languages import language_tag
from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Entry,
    Feed,
    Geo,
    Hints,
    IdSource,
    Link,
    Text,
)
from protocols.text import text_of_html


class Spare(NamedTuple):
    """A module's word for a field. ``element`` is what to keep if it does not count;
    ``None``: it is kept anyway. The lowest ``rank`` counts first."""

    field: str
    value: Any
    element: Element | None
    rank: int


def _rank(spare: Spare) -> int:
    return spare.rank


class Draft(Struct):
    """What heads and entries have in common."""

    id: str = ""
    title: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    links_by_use: dict[tuple[str, str], Link] = field(default_factory=dict)
    authors: Sequence[Author] = ()  # this and the like: see `append`
    contributors: Sequence[Author] = ()
    categories_by_name: dict[tuple[str, str, str], Category] = field(
        default_factory=dict
    )
    language: str = ""
    rights: str = ""
    extensions: Groups = field(default_factory=dict)
    summary: Text | None = None
    latitude: str = ""  # both are empty again once they are the place
    longitude: str = ""
    geo: Geo | None = None
    creators: Sequence[Author] = ()
    spares: Sequence[Spare] = ()
    spare_author: str = ""
    permalink: str = ""  # said otherwise than by a link: an id may be the address

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self.links_by_use.values())

    def add_link(self, link: Link) -> bool:
        """Add a link, unless one to the same place for the same purpose is there.

        False: the one that is there says something else of it.
        """
        present = self.links_by_use.setdefault((link.rel, link.href), link)
        return present is link or present == link

    def append(self, field: str, value: object) -> None:
        """Add to a list, which is made for its first value: most have none."""
        present = getattr(self, field)
        if present:
            present.append(value)
        else:
            setattr(self, field, [value])

    def offer(
        self, field: str, value: Any, element: Element | None = None, rank: int = 0
    ) -> None:
        """A module's value for a field, if it has one; see `Spare`.

        One that would not be kept comes too late for a field that has its value.
        """
        if value and (element is not None or not getattr(self, field)):
            self.append("spares", Spare(field, value, element, rank))

    def offer_summary(
        self, summary: Text, element: Element | None = None, rank: int = 0
    ) -> None:
        """Like `offer`, for a text that describes what it stands in."""
        if summary.value:
            self.offer("summary", summary, element, rank)

    def put(self, field: str, value: Any, element: Element) -> None:
        """The format's own value for a field: the first one that says anything."""
        present = getattr(self, field)
        if not present:
            setattr(self, field, value)
        elif value and value != present:
            keep_element(self.extensions, element)

    def settle(self) -> None:
        """All is read: let spare values take the places that are free."""
        spares = self.spares
        if spares:
            if len(spares) > 1:
                spares = sorted(spares, key=_rank)
            for field, value, element, _ in spares:
                present = getattr(self, field)
                if not present:
                    setattr(self, field, value)
                elif element is not None and value != present:
                    keep_element(self.extensions, element)
            self.spares = ()
        if self.latitude:
            keep_value(self.extensions, "geo", "lat", self.latitude)
        if self.longitude:
            keep_value(self.extensions, "geo", "long", self.longitude)

    def first_link(self, rel: str) -> str:
        for use, href in self.links_by_use:
            if use == rel:
                return href
        return ""

    @property
    def categories(self) -> tuple[Category, ...]:
        return tuple(self.categories_by_name.values())

    def add_category(self, term: str, scheme: str = "", label: str = "") -> None:
        """Add a category, unless it is there or has no name."""
        key = (term, scheme, label)
        if term and key not in self.categories_by_name:
            self.categories_by_name[key] = Category(
                term=term, scheme=scheme, label=label
            )

    def all_authors(self) -> tuple[Author, ...]:
        """Authors and creators; one with a name only and one with an address only,
        as RSS has them side by side, are the same person."""
        authors, creators = self.authors, self.creators
        if not self.spare_author and not (authors and creators):
            return tuple(authors or creators)
        if len(authors) == len(creators) == 1 and not authors[0].name:
            return (replace(authors[0], name=creators[0].name),)
        names = {author.name for author in authors}
        everyone = [*authors, *(each for each in creators if each.name not in names)]
        if self.spare_author and not everyone:
            return (Author(name=self.spare_author),)
        if self.spare_author and len(everyone) == 1 and not everyone[0].name:
            return (replace(everyone[0], name=self.spare_author),)
        return tuple(everyone)


def read_date(draft: Draft, element: Element) -> datetime | None:
    """An element's date; one that cannot be read is kept as it is written."""
    written = text_of(element)
    date = parse_date(written)
    if date is None and written:
        keep_element(draft.extensions, element)
    return date


def read_language(draft: Draft, element: Element, scope: Scope) -> None:
    """The last one counts; what names none, or another than before, is kept."""
    written = text_of(element)
    tag = language_tag(written)
    if written and (not tag or (draft.language and tag != draft.language)):
        keep_element(draft.extensions, element)
    draft.language = tag or draft.language


def date_of_element(entry: Element) -> datetime | None:
    """The date of an entry that is not read yet."""
    dates = {local_name(each.tag).lower(): text_of(each) for each in entry}
    written = (dates[name] for name in _DATES if name in dates)
    return next(filter(None, map(parse_date, written)), None)


_DATES = ("pubdate", "published", "issued", "created", "date", "updated", "modified")


class HeadDraft(Draft):
    subtitle: str = ""
    generator: str = ""
    icon: str = ""
    logo: str = ""
    ttl_minutes: int | None = None
    update_period: str = ""
    update_frequency: int | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()

    def offer_summary(
        self, summary: Text, element: Element | None = None, rank: int = 0
    ) -> None:
        self.offer("subtitle", text_of_html(summary.value), element, rank)

    def finish(self) -> Feed:
        """The head as a value; spare values have their places then."""
        self.settle()
        return Feed(
            id=self.id,
            title=self.title,
            subtitle=self.subtitle,
            published=self.published,
            updated=self.updated,
            links=self.links,
            authors=self.all_authors(),
            contributors=tuple(self.contributors),
            categories=self.categories,
            language=self.language,
            rights=self.rights,
            generator=self.generator,
            icon=self.icon,
            logo=self.logo,
            extensions=self.extensions,
        )

    def hints(self) -> Hints:
        return Hints(
            ttl_minutes=self.ttl_minutes,
            update_period=self.update_period,
            update_frequency=self.update_frequency,
            skip_hours=self.skip_hours,
            skip_days=self.skip_days,
        )


class EntryDraft(Draft):
    content: Text | None = None
    base: str = ""  # what references in its texts are relative to
    is_base_stated: bool = False  # by an xml:base; else its own link goes before
    is_unspoken: bool = False  # it has no language, whatever the head's is
    verbs: Sequence[str] = ()
    object_types: Sequence[str] = ()
    objects: Sequence[ActivityObject] = ()
    source: Feed | None = None
    shared: Sequence[tuple[str, IdSource]] = ()
    """Keys that it has in common with other entries, and what they are of."""

    def finish(self, identity: Identity) -> Entry:
        """The entry as a value, after `settle`."""
        links, categories = self.links_by_use, self.categories_by_name
        return Entry(
            identity.key,
            identity.id,
            identity.source,
            self.title,
            self.summary,
            self.content,
            self.published,
            self.updated,
            (*links.values(),) if links else (),
            self.all_authors(),
            tuple(self.contributors) if self.contributors else (),
            (*categories.values(),) if categories else (),
            self.geo,
            tuple(self.verbs) if self.verbs else (),
            tuple(self.object_types) if self.object_types else (),
            tuple(self.objects) if self.objects else (),
            self.language,
            self.rights,
            self.source,
            extensions=self.extensions,  # behind ``unlisted``
        )


def begin_entry(scope: Scope) -> EntryDraft:
    """An entry of which nothing is read yet, in the scope inside of its element."""
    draft = EntryDraft()  # without keywords, which take as long as all its fields
    draft.language = scope.language
    draft.base = scope.base
    draft.is_base_stated = scope.is_stated
    draft.is_unspoken = scope.is_unspoken
    return draft
