"""The rule of `storage.subscription_filter.wants`, for SQL."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from storage.records import Format, RecordKind, Updates
from storage.subscription_filter import wants


def wanted_news() -> Iterator[tuple[str, str]]:
    """Who takes what: ``format || '/' || updates`` of a subscription, and ``news`` of a
    record."""
    either = (False, True)
    for case in product(Format, Updates, RecordKind, either, either):
        format, updates, kind, any_fresh, is_superseded = case
        if wants(format, updates, kind, any_fresh, is_superseded):
            news = f"{kind}/{int(any_fresh)}/{int(is_superseded)}"
            yield f"{format}/{updates}", news
