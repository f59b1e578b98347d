"""What a head says about when to come back: ``ttl``, ``skipHours``, ``sy:*``.

All is kept as an extension, too: the schema has no place for it.
"""

from __future__ import annotations

from typing import Final

from protocols.feeds.drafts import HeadDraft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.text import whole_number

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _ttl(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.ttl_minutes = whole_number(text_of(element))


def _skip_hours(draft: HeadDraft, element: Element, scope: Scope) -> None:
    """Hours 0 to 23; the midnight that RSS 0.91 calls 24 is 0."""
    keep_element(draft.extensions, element)
    hours = (whole_number(text_of(child)) for child in element)
    skipped = {hour % 24 for hour in hours if hour is not None and hour <= 24}
    draft.skip_hours = tuple(sorted(skipped))


def _skip_days(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    names = {text_of(child)[:3].lower() for child in element}
    draft.skip_days = tuple(
        number for number, name in enumerate(_DAYS) if name in names
    )


def _update_period(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.update_period = text_of(element)


def _update_frequency(draft: HeadDraft, element: Element, scope: Scope) -> None:
    keep_element(draft.extensions, element)
    draft.update_frequency = whole_number(text_of(element))


SCHEDULE: Final = {
    **qualified("rss", {"skipDays": _skip_days, "skipHours": _skip_hours, "ttl": _ttl}),
    **qualified(
        "sy",
        {"updateFrequency": _update_frequency, "updatePeriod": _update_period},
    ),
}
