"""A publisher that does to its feed what real ones do, and knows what is truly new.

Each step makes one document. An edit is shown at once, in a document that can be read:
an entry that was never shown could not be recognized again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from random import Random

from tests.support.newsreader import NOON, entry, post, site_atom, site_rss

WINDOW = 12


class Step(StrEnum):
    ADD = "add"
    EDIT = "edit"
    REORDER = "reorder"
    VANISH = "vanish"
    RETURN = "return"
    EMPTY = "empty"
    TRUNCATE = "truncate"
    ERROR_PAGE = "error page"
    CHANGE_IDS = "change ids"
    CHANGE_FORMAT = "change format"
    REPEAT = "the same entries twice"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class Post:
    number: int
    edits: int = 0

    @property
    def name(self) -> str:
        """The words in its title that stay, whatever else changes."""
        return f"Post {self.number}."


@dataclass
class ModelPublisher:
    """A feed of posts. ``has_ids``: its entries have ids, or else links alone."""

    random: Random
    has_ids: bool = True
    shown: list[Post] = field(default_factory=list)
    away: list[Post] = field(default_factory=list)
    count: int = 0
    epoch: int = 0  # of ids
    builds: int = 0
    is_atom: bool = False

    def __post_init__(self) -> None:
        self._add(self.random.randint(2, 6))

    def publish(self, step: Step) -> bytes:
        """Make the next document."""
        self.builds += 1
        match step:
            case Step.EMPTY:
                return self._document([])
            case Step.REPEAT:
                return self._document(self.shown * 2)
            case Step.TRUNCATE:
                whole = self.document()
                return whole[: self.random.randint(0, len(whole))]
            case Step.ERROR_PAGE:
                return b"<html><body>Error %d</body></html>" % self.builds
            case Step.CHANGE_IDS:
                self.epoch += 1
            case Step.CHANGE_FORMAT:
                self.is_atom = not self.is_atom
            case _:
                self._change_entries(step)
        return self.document()

    def _change_entries(self, step: Step) -> None:
        match step:
            case Step.ADD:
                self._add(self.random.randint(1, 4))
            case Step.EDIT:
                self.shown = [self._edited(each) for each in self.shown]
            case Step.REBUILD:
                self.shown = [
                    replace(each, edits=each.edits + 1) for each in self.shown
                ]
            case Step.REORDER:
                self.random.shuffle(self.shown)
            case Step.VANISH:
                self._vanish()
            case Step.RETURN:
                self.shown += self.away
                self.away = []

    def document(self) -> bytes:
        return self._document(self.shown)

    def names(self) -> set[str]:
        """The names of the entries that a complete document shows."""
        return {each.name for each in self.shown}

    def _add(self, count: int) -> None:
        for _ in range(count):
            self.count += 1
            self.shown.insert(0, Post(self.count))
        self.away += self.shown[WINDOW:]
        del self.shown[WINDOW:]

    def _vanish(self) -> None:
        """Remove a third of the posts, so that a later change of ids affects most."""
        gone = self.random.sample(self.shown, len(self.shown) // 3)
        self.away += gone
        self.shown = [each for each in self.shown if each not in gone]

    def _edited(self, post: Post) -> Post:
        is_edited = self.random.random() < 0.5
        return replace(post, edits=post.edits + 1) if is_edited else post

    def _document(self, posts: list[Post]) -> bytes:
        if self.is_atom:
            return site_atom(
                *map(self._entry, posts), f"<updated>{self.builds}</updated>"
            )
        return site_rss(*map(self._item, posts), head=f"<ttl>{self.builds}</ttl>")

    def _item(self, each: Post) -> str:
        return post(
            each.number,
            guid=f"{self.epoch}/{each.number}" if self.has_ids else "",
            title=each.name,
            date=NOON - timedelta(minutes=each.number),
            text=f"Edit {each.edits} & more of {each.number}",
        )

    def _entry(self, each: Post) -> str:
        return entry(
            f"tag:{self.epoch}/{each.number}" if self.has_ids else "",
            link=f"https://site.example/{each.number}",
            title=each.name,
            published=NOON - timedelta(minutes=each.number),
            text=f"Edit {each.edits} &amp; more of {each.number}",
        )
