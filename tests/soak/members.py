"""Which callbacks must be subscribed, by the hub's answers, and which are, by its list.

A request that ended without an answer may have been obeyed or not. That is not guessed,
but looked up in the hub's list when that process is gone, or has nothing more to do;
what is found there holds from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from time import monotonic

import aiohttp

NOTHING_STORED = HTTPStatus.SERVICE_UNAVAILABLE


class Membership(StrEnum):
    IN = "in"
    OUT = "out"
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Member:
    """One callback, and whether it is subscribed.

    ``since``: when that became known; ``refused``: how often the hub said that it had
    stored nothing.
    """

    callback: str
    id: int = 0
    membership: Membership = Membership.OUT
    since: float = 0.0
    refused: int = 0

    @contextmanager
    def becoming(self, membership: Membership) -> Iterator[None]:
        """Ask the hub for a change in the block; after a 503 all is as it was
        before."""
        before = self.membership
        self._settle(Membership.UNKNOWN)
        try:
            yield
        except aiohttp.ClientResponseError as error:
            if error.status == NOTHING_STORED:
                self.refused += 1
                self._settle(before)
            raise
        self._settle(membership)

    def look(self, listed: Mapping[str, int]) -> str:
        """What is wrong with the hub's list; "" if nothing, or nothing was known."""
        found = Membership.IN if self.callback in listed else Membership.OUT
        expected, self.id = self.membership, listed.get(self.callback, self.id)
        if found is not expected:
            self._settle(found)
        if expected in (found, Membership.UNKNOWN):
            return ""
        return (
            f"{self.callback} is {found} the hub's list, but was {expected} by its last"
            f" answer ({self.refused} were 503)"
        )

    def _settle(self, membership: Membership) -> None:
        self.membership, self.since = membership, monotonic()


@dataclass(slots=True)
class Members:
    """All callbacks that there ever were, by URL."""

    all: dict[str, Member] = field(default_factory=dict)
    looked_up: int = 0  # outcomes of unanswered requests

    def add(self, callback: str) -> Member:
        """The member with this callback; a new one is not subscribed."""
        return self.all.setdefault(callback, Member(callback))

    @property
    def subscribed(self) -> int:
        """How many are subscribed. Raises `AssertionError` while that is unknown."""
        memberships = [each.membership for each in self.all.values()]
        assert Membership.UNKNOWN not in memberships
        return memberships.count(Membership.IN)

    def look(self, listed: Mapping[str, int]) -> Iterator[str]:
        """What is wrong with the hub's list, its ids of subscriptions by callback."""
        for callback in listed.keys() - self.all.keys():
            yield f"{callback} is subscribed, and nobody asked for it"
        for member in self.all.values():
            self.looked_up += member.membership is Membership.UNKNOWN
            if complaint := member.look(listed):
                yield complaint
