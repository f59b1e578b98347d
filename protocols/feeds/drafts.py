"""Heads and entries while they are being read, before they become values.

The ``spare`` fields hold what an extension module says; they count only where the
format's own element is missing, whatever order both come in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from protocols.feeds.extensions import Groups
from protocols.identity import Identity
from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Entry,
    Feed,
    Geo,
    Hints,
    Link,
    Text,
)
from protocols.text import text_of_html


@dataclass(slots=True)
class Draft:
    """What heads and entries have in common."""

    id: str = ""
    title: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    links_by_use: dict[tuple[str, str], Link] = field(default_factory=dict)
    authors: list[Author] = field(default_factory=list)
    contributors: list[Author] = field(default_factory=list)
    categories: dict[Category, None] = field(default_factory=dict)
    language: str = ""
    rights: str = ""
    extensions: Groups = field(default_factory=dict)
    summary: Text | None = None  # of a head: its subtitle
    latitude: str = ""
    longitude: str = ""
    geo: Geo | None = None
    creators: list[Author] = field(default_factory=list)
    spare_title: str = ""
    spare_summary: Text | None = None
    spare_published: datetime | None = None
    spare_updated: datetime | None = None
    spare_author: str = ""

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self.links_by_use.values())

    def add_link(self, link: Link) -> None:
        """Add a link, unless one to the same place for the same purpose is there."""
        self.links_by_use.setdefault((link.rel, link.href), link)

    def first_link(self, rel: str) -> str:
        links = self.links_by_use.values()
        return next((link.href for link in links if link.rel == rel), "")

    def add_category(self, category: Category) -> None:
        if category.term:
            self.categories.setdefault(category)

    def all_authors(self) -> tuple[Author, ...]:
        """Authors and creators; one with a name only and one with an address only,
        as RSS has them side by side, are the same person."""
        authors, creators = self.authors, self.creators
        if len(authors) == len(creators) == 1 and not authors[0].name:
            return (replace(authors[0], name=creators[0].name),)
        names = {author.name for author in authors}
        everyone = [*authors, *(each for each in creators if each.name not in names)]
        if not everyone and self.spare_author:
            return (Author(name=self.spare_author),)
        return tuple(everyone)


@dataclass(slots=True)
class HeadDraft(Draft):
    subtitle: str = ""
    generator: str = ""
    icon: str = ""
    logo: str = ""
    spare_logo: str = ""
    ttl_minutes: int | None = None
    update_period: str = ""
    update_frequency: int | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()

    def finish(self) -> Feed:
        return Feed(
            id=self.id,
            title=self.title or self.spare_title,
            subtitle=self._subtitle(),
            published=self.published or self.spare_published,
            updated=self.updated or self.spare_updated,
            links=self.links,
            authors=self.all_authors(),
            contributors=tuple(self.contributors),
            categories=tuple(self.categories),
            language=self.language,
            rights=self.rights,
            generator=self.generator,
            icon=self.icon,
            logo=self.logo or self.spare_logo,
            extensions=self.extensions,
        )

    def _subtitle(self) -> str:
        summary = self.summary or self.spare_summary
        return self.subtitle or (text_of_html(summary.value) if summary else "")

    def hints(self) -> Hints:
        return Hints(
            ttl_minutes=self.ttl_minutes,
            update_period=self.update_period,
            update_frequency=self.update_frequency,
            skip_hours=self.skip_hours,
            skip_days=self.skip_days,
        )


@dataclass(slots=True)
class EntryDraft(Draft):
    content: Text | None = None
    permalink: str = ""  # an id that is said to be the entry's address
    verbs: list[str] = field(default_factory=list)
    object_types: list[str] = field(default_factory=list)
    objects: list[ActivityObject] = field(default_factory=list)
    source: Feed | None = None

    def finish(self, identity: Identity) -> Entry:
        return Entry(
            key=identity.key,
            id=identity.id,
            id_source=identity.source,
            title=self.title or self.spare_title,
            summary=self.summary or self.spare_summary,
            content=self.content,
            published=self.published or self.spare_published,
            updated=self.updated or self.spare_updated,
            links=self.links,
            authors=self.all_authors(),
            contributors=tuple(self.contributors),
            categories=tuple(self.categories),
            geo=self.geo,
            verbs=tuple(self.verbs),
            object_types=tuple(self.object_types),
            objects=tuple(self.objects),
            language=self.language,
            rights=self.rights,
            source=self.source,
            extensions=self.extensions,
        )
