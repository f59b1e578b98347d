"""What may be asked of feeds, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hub.polling.scout import Kind
from protocols.errors import InvalidValue
from protocols.websub.requests import LONGEST_SECRET
from storage.records import Credentials, StoredFeed

LONGEST_WAIT: Final = 20.0
"""Seconds a caller may wait for a fetch; the fetch itself goes on."""
LONGEST_SECTION: Final = 200
LONGEST_NAME: Final = 1_000
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFeed:
    url: str
    private: bool = False
    section: str = ""
    title: str = ""  # until it has its own
    description: str = ""  # as well
    credentials: Credentials | None = None
    publish_secret: str = ""  # what its publisher signs pings with content with
    subscription_callback: str | None = None  # asked about subscriptions; "": nobody
    wait: float = LONGEST_WAIT  # seconds; 0: do not wait for the first fetch
    discover: bool = False  # of a page, add the feed that it names, or its site
    kind: Kind = Kind.ANY  # of what is discovered

    def check_publish_secret(self) -> None:
        """Raises `InvalidValue`."""
        if len(self.publish_secret.encode()) > LONGEST_SECRET:
            raise InvalidValue("publish_secret", f"at most {LONGEST_SECRET} bytes")

    def check_names(self) -> None:
        """Of its section and itself. Raises `InvalidValue`."""
        for field, name, longest in (
            ("section", self.section, LONGEST_SECTION),
            ("title", self.title, LONGEST_NAME),
            ("description", self.description, LONGEST_NAME),
        ):
            if len(name) > longest or not name.isprintable():
                expected = f"at most {longest} printable characters"
                raise InvalidValue(field, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFeed:
    feed: StoredFeed
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedFeed:
    """``is_fetched`` is False while the server must be left alone, or still answers."""

    feed: StoredFeed
    is_fetched: bool
