"""Why a feed is polled when it is: one sentence, and all terms of its period."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hub.core.durations import duration
from hub.core.schedule.poll_period import Plan, Term
from hub.core.schedule.posting_profile import Counts, read_habits
from storage.records import FeedState, StoredFeed

HOURS_A_WEEK = 168
_MONDAY = 4 * 86_400.0  # the first one after 1970 began
_HOUR = 3_600.0
_WISHES = ("ttl", "sy:updatePeriod")
_DEMANDS = ("fresh", "retry after")
_HINTS = (*_WISHES, *_DEMANDS, "skip")
_HABITS = ("hours", "weekdays", "minutes")
_TRUSTED = "from 0 to 1: how well its {} have told when it posts"
_REASONS = {
    "settling": "it is new: {note}",
    "pushed": "its hub pushes new entries, and it is polled every {span} in case that"
    " fails",
    "promised": "it is polled at least every {span} {note}",
    "floor": "it is polled at most every {span} ({note})",
    "ttl": "it asks to be polled at most every {span} (ttl)",
    "sy:updatePeriod": "it asks to be polled at most every {span} (sy:updatePeriod)",
    "fresh": "its server declared the answer fresh for {span} (max-age or Expires)",
    "retry after": "its server asks for no request within {span} (Retry-After)",
    "backoff": "it is failing, and is tried again after about {span} ({note})",
    "skip": "it asks not to be polled for another {span} (skipHours and skipDays)",
}
"""Reasons by the term that decided. If none of these did, the price decided."""
_HINTED = "its hub announced news without content that can be verified"
_NOT_FETCHED = "it was not fetched yet"
_NOT_POLLED = {
    FeedState.PAUSED: "it is paused",
    FeedState.GONE: "it answered 410",
    FeedState.DEAD: "it answered nothing but 404 for days",
    FeedState.REMOVED: "it was removed",
    FeedState.TRACK: "it is a track query, which is never fetched",
    FeedState.EVENTS: "it stands for events, which are never fetched",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExplanation:
    """``hours`` are the factors of the 168 hours of a week, from Monday 0:00 UTC, and
    ``minutes`` those of the twelve parts of any hour, by which the rate is multiplied.
    ``in_force``: the terms asked for by server or document, except ignored ones."""

    sentence: str
    reason: str  # the part of it that says why
    rate: float  # λ, entries a day
    rate_now: float
    price: float  # entry-seconds
    in_force: tuple[str, ...]
    hours: Counts
    minutes: Counts
    terms: tuple[Term, ...]


def explain_plan(
    feed: StoredFeed, plan: Plan, *, is_hinted: bool = False, is_whole: bool = True
) -> PlanExplanation:
    """Explain the plan of a feed, made from the feed's state. ``is_hinted``: its hub
    told of news that no fetch has seen yet. ``is_whole`` False: without hours and
    minutes."""
    terms = {term.name: term for term in plan.terms}
    profile = plan.forecast.profile
    hours = range(HOURS_A_WEEK if is_whole else 0)
    reason = reason_of(feed, plan, is_hinted=is_hinted)
    return PlanExplanation(
        sentence=_sentence(feed, reason),
        reason=reason,
        rate=terms["rate"].value,
        rate_now=terms["rate now"].value,
        price=terms["price"].value,
        in_force=tuple(term.name for term in _in_force(terms, _HINTS)),
        hours=tuple(round(profile.at(_MONDAY + _HOUR * each), 3) for each in hours),
        minutes=tuple(round(each, 3) for each in profile.steps()) if is_whole else (),
        terms=_with_trust(plan.terms, read_habits(feed.polling.posting.habits).trust),
    )


def _with_trust(terms: tuple[Term, ...], trust: Counts) -> tuple[Term, ...]:
    """The terms; the trust in each habit follows the habit."""
    explained = [
        Term(name=f"trust, {name}", value=value, unit="", note=_TRUSTED.format(name))
        for name, value in zip(_HABITS, trust, strict=True)
    ]
    behind = 1 + [term.name for term in terms].index("habit")
    return (*terms[:behind], *explained, *terms[behind:])


def reason_of(feed: StoredFeed, plan: Plan, *, is_hinted: bool = False) -> str:
    """Why a feed is fetched next when it is, or why it is not: words that go on after
    "because"."""
    if feed.state in _NOT_POLLED:
        return _NOT_POLLED[feed.state]
    if feed.polling.last_fetch is None:
        return _NOT_FETCHED
    if is_hinted and feed.next_fetch < plan.next_fetch:
        return _HINTED
    terms = {term.name: term for term in plan.terms}
    # the end of skipped hours, or else the longest of all waits
    decisive = terms.get("skip") or _longest(terms)
    if feed.own_period and decisive.name not in (*_DEMANDS, "backoff", "skip"):
        return f"its period is set to {duration(feed.own_period)}"
    return _why(decisive, terms)


def _sentence(feed: StoredFeed, reason: str) -> str:
    if feed.state in _NOT_POLLED:
        return f"no next fetch because {reason}"
    return f"next fetch at {feed.next_fetch:%Y-%m-%d %H:%M:%S}Z because {reason}"


def _why(decisive: Term, terms: dict[str, Term]) -> str:
    span = duration(decisive.value)
    if decisive.name in _REASONS:
        return _REASONS[decisive.name].format(span=span, note=decisive.note)
    entries = float(f"{terms['rate now'].value:.3g}")
    return (
        f"{entries:,g} entries a day are expected now, for which the poll budget allows"
        f" a poll every {span}"
    )


def _longest(terms: dict[str, Term]) -> Term:
    """The longest wait that the hub plans itself, or that feed and server ask for."""
    if "backoff" in terms:
        planned, asked = terms["backoff"], _in_force(terms, _DEMANDS)
    else:
        planned = _planned(terms)
        asked = _in_force(terms, (*_DEMANDS, *_WISHES))
    if "settling" in terms and terms["settling"].value < planned.value:
        planned = terms["settling"]
    return max([planned, *asked], key=lambda term: term.value)


def _planned(terms: dict[str, Term]) -> Term:
    """What the period is made of: the price or the promise, and floors before both."""
    if "pushed" in terms:
        return terms["pushed"]
    wanted, promised = terms["wanted"], terms["promised"]
    sooner = promised if promised.value < wanted.value else wanted
    return max(terms["floor"], sooner, key=lambda term: term.value)


def _in_force(terms: dict[str, Term], names: Iterable[str]) -> list[Term]:
    found = [terms[name] for name in names if name in terms]
    return [term for term in found if not term.note.startswith("ignored")]
