"""Heads and entries while they are being read, before they become values.

If an extension module has a value for a field that the format has its own element for,
the value is spare: it is used only if that element is missing, in whichever order they
come. A spare value that is not used, and a second value of a single-valued field, are
kept as extensions.
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
    """An extension module's value for a field.

    ``element`` is kept as an extension if the value is not used; ``None`` if it was
    kept already. The value with the lowest ``rank`` is used.
    """

    field: str
    value: Any
    element: Element | None
    rank: int


def _rank(spare: Spare) -> int:
    return spare.rank


class Draft(Struct):
    """The fields that heads and entries have in common."""

    id: str = ""
    title: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    links_by_use: dict[tuple[str, str], Link] = field(default_factory=dict)
    authors: Sequence[Author] = ()  # like all sequences here a list after `append`
    contributors: Sequence[Author] = ()
    categories_by_name: dict[tuple[str, str, str], Category] = field(
        default_factory=dict
    )
    language: str = ""
    rights: str = ""
    extensions: Groups = field(default_factory=dict)
    summary: Text | None = None
    latitude: str = ""  # both are cleared once they have become ``geo``
    longitude: str = ""
    geo: Geo | None = None
    creators: Sequence[Author] = ()
    spares: Sequence[Spare] = ()
    spare_author: str = ""
    permalink: str = ""  # the page, if another element names it: an id, say

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self.links_by_use.values())

    def add_link(self, link: Link) -> bool:
        """Add a link, unless there is one with the same relation and URL.

        Returns False if the present link differs from this one in another field.
        """
        present = self.links_by_use.setdefault((link.rel, link.href), link)
        return present is link or present == link

    def append(self, field: str, value: object) -> None:
        """Add to a list. The list is made for the first value: most fields have
        none.
        """
        present = getattr(self, field)
        if present:
            present.append(value)
        else:
            setattr(self, field, [value])

    def offer(
        self, field: str, value: Any, element: Element | None = None, rank: int = 0
    ) -> None:
        """Offer an extension module's value for a field, unless it is empty; see
        `Spare`.

        Without an element to keep, the value is dropped if the field is already set.
        """
        if value and (element is not None or not getattr(self, field)):
            self.append("spares", Spare(field, value, element, rank))

    def offer_summary(
        self, summary: Text, element: Element | None = None, rank: int = 0
    ) -> None:
        """Like `offer`, for a text that describes the feed or entry."""
        if summary.value:
            self.offer("summary", summary, element, rank)

    def put(self, field: str, value: Any, element: Element) -> None:
        """Set a field to the format's own value; the first value that is not empty is
        used.

        A different second value is kept as an extension.
        """
        present = getattr(self, field)
        if not present:
            setattr(self, field, value)
        elif value and value != present:
            keep_element(self.extensions, element)

    def settle(self) -> None:
        """Finish reading: use spare values for the fields that are still empty."""
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
        """Add a category, unless its term is empty or it has been added already."""
        key = (term, scheme, label)
        if term and key not in self.categories_by_name:
            self.categories_by_name[key] = Category(
                term=term, scheme=scheme, label=label
            )

    def all_authors(self) -> tuple[Author, ...]:
        """Authors and creators together.

        RSS may give a person's name in one element and the e-mail address in another:
        if there is one author without a name and one creator, they are the same person.
        """
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
    """Read an element's date; one that cannot be read is kept as an extension."""
    written = text_of(element)
    date = parse_date(written)
    if date is None and written:
        keep_element(draft.extensions, element)
    return date


def read_language(draft: Draft, element: Element, scope: Scope) -> None:
    """Read the language; the last one is used.

    A text that names no language, or another one than before, is kept as an extension.
    """
    written = text_of(element)
    tag = language_tag(written)
    if written and (not tag or (draft.language and tag != draft.language)):
        keep_element(draft.extensions, element)
    draft.language = tag or draft.language


def date_of_element(entry: Element) -> datetime | None:
    """The date of an entry that has not been read yet; None if it has none."""
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
        """The head as a value. Settles spare values first."""
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
    base: str = ""  # the base of references in its texts
    is_base_stated: bool = False  # by an xml:base; otherwise its own page is preferred
    is_unspoken: bool = False  # see `Scope`: it gets no language from the head
    verbs: Sequence[str] = ()
    object_types: Sequence[str] = ()
    objects: Sequence[ActivityObject] = ()
    source: Feed | None = None
    shared: Sequence[tuple[str, IdSource]] = ()
    """Keys that the entry shares with others, and what each key was made from."""

    def finish(self, identity: Identity) -> Entry:
        """The entry as a value. Call `settle` first."""
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
            extensions=self.extensions,  # comes after ``unlisted``
        )


def begin_entry(scope: Scope) -> EntryDraft:
    """A new entry draft for an element; ``scope`` is the one inside the element."""
    draft = EntryDraft()  # keyword arguments would double the time
    draft.language = scope.language
    draft.base = scope.base
    draft.is_base_stated = scope.is_stated
    draft.is_unspoken = scope.is_unspoken
    return draft
