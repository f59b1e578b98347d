"""Why a feed is polled when it is: one sentence, and all the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass

from hub.core.durations import duration
from hub.core.schedule.poll_period import Plan, Term
from hub.core.schedule.posting_profile import Counts, read_habits
from storage.records import FeedState, StoredFeed

HOURS_A_WEEK = 168
_MONDAY = 4 * 86_400.0  # the first one after 1970 began
_HOUR = 3_600.0
_WAITS = ("pushed", "wanted", "floor", "ttl", "sy:updatePeriod")
_HABITS = ("hours", "weekdays", "minutes")
_HINTS = ("ttl", "sy:updatePeriod", "fresh", "retry after", "skip")
_REASONS = {
    "pushed": "its hub pushes what is new, and it is asked every {span} in case that"
    " fails",
    "floor": "it is asked every {span} at most ({note})",
    "ttl": "it wishes to be asked every {span} at most (ttl)",
    "sy:updatePeriod": "it wishes to be asked every {span} at most (sy:updatePeriod)",
    "fresh": "its server said that the answer is good for {span} (max-age or Expires)",
    "retry after": "its server wants no request for {span} (Retry-After)",
    "backoff": "it is in trouble, and left alone for up to {span} ({note})",
    "skip": "it wishes not to be asked for {span} more (skipHours and skipDays)",
}
"""Of the terms that may decide; where none of these does, the price did."""
_HINTED = "its hub told of news, but not in a way that could be believed or read"
_NOT_POLLED = {
    FeedState.PAUSED: "it is paused",
    FeedState.GONE: "it answered 410",
    FeedState.DEAD: "it answered nothing but 404 for long",
    FeedState.REMOVED: "it was removed",
    FeedState.TRACK: "it is a track query, which is never fetched",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExplanation:
    """``hours`` are the factors of the 168 hours of a week, from Monday 0:00 UTC, and
    ``minutes`` those of the twelve parts of any hour, by which the rate is multiplied.
    ``in_force`` names the terms that are what server and document ask for, less what is
    ignored."""

    sentence: str
    rate: float  # λ, entries a day
    rate_now: float
    price: float  # entry-seconds
    in_force: tuple[str, ...]
    hours: Counts
    minutes: Counts
    terms: tuple[Term, ...]


def explain_plan(
    feed: StoredFeed, plan: Plan, *, is_hinted: bool = False
) -> PlanExplanation:
    """What the plan of a feed says, made as its state implies. ``is_hinted``: its hub
    told of news that no fetch has seen yet."""
    terms = {term.name: term for term in plan.terms}
    profile = plan.forecast.profile
    hours = (_MONDAY + _HOUR * hour for hour in range(HOURS_A_WEEK))
    return PlanExplanation(
        sentence=_sentence(
            feed, terms, is_hinted=is_hinted and feed.next_fetch < plan.next_fetch
        ),
        rate=terms["rate"].value,
        rate_now=terms["rate now"].value,
        price=terms["price"].value,
        in_force=tuple(name for name in _HINTS if _counts(terms.get(name))),
        hours=tuple(round(profile.at(hour), 3) for hour in hours),
        minutes=tuple(round(factor, 3) for factor in profile.steps()),
        terms=_with_trust(plan.terms, read_habits(feed.polling.posting.habits).trust),
    )


def _with_trust(terms: tuple[Term, ...], trust: Counts) -> tuple[Term, ...]:
    """Behind the habit, how far it is believed."""
    told = [
        Term(name=f"trust, {name}", value=value, unit="", note=f"of the habit: {name}")
        for name, value in zip(_HABITS, trust, strict=True)
    ]
    behind = 1 + [term.name for term in terms].index("habit")
    return (*terms[:behind], *told, *terms[behind:])


def _sentence(feed: StoredFeed, terms: dict[str, Term], *, is_hinted: bool) -> str:
    if feed.state in _NOT_POLLED:
        return f"no next fetch because {_NOT_POLLED[feed.state]}"
    why = _HINTED if is_hinted else _why(terms)
    return f"next fetch at {feed.next_fetch:%Y-%m-%d %H:%M:%S}Z because {why}"


def _why(terms: dict[str, Term]) -> str:
    """What decided: the end of skipped hours, or else the longest of all waits."""
    own = ("backoff",) if "backoff" in terms else _WAITS
    counting = [
        terms[name]
        for name in ("fresh", "retry after", *own)
        if _counts(terms.get(name))
    ]
    decisive = terms.get("skip") or max(counting, key=lambda term: term.value)
    span = duration(decisive.value)
    if decisive.name in _REASONS:
        return _REASONS[decisive.name].format(span=span, note=decisive.note)
    return (
        f"{span} of waiting, at {terms['rate now'].value:.3g}"
        " entries a day expected now, is worth a poll at the price of"
        f" {terms['price'].value:.3g} entry-seconds"
    )


def _counts(term: Term | None) -> bool:
    return term is not None and not term.note.startswith("ignored")
