"""Values into JSON: the documents of the administration API.

Secrets, credentials and validators' contents that could authenticate never appear; a
secret shows as ``has_secret``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import orjson
from starlette.responses import Response

from hub.services.feed_reports import ExplainedFeed, FeedReport, FindingsPage
from hub.services.feed_requests import ImportedFeed
from hub.services.operations import Health
from hub.services.subscriptions import SubscriptionReport
from hub.sites.feed_finder import LookupResult
from protocols.errors import FeedLink
from storage.records import (
    Attempt,
    DeadRange,
    Polling,
    PushCount,
    PushHub,
    StoredFeed,
    Straggler,
    Subscription,
    Token,
)

JSON_TYPE = "application/json; charset=utf-8"
Members = dict[str, object]


def json_response(
    document: Mapping[str, object],
    status: HTTPStatus = HTTPStatus.OK,
    *,
    is_secret: bool = False,
) -> Response:
    """Times come out as RFC 3339 in UTC with ``Z``. ``is_secret``: nobody keeps it."""
    body = orjson.dumps(document, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)
    headers = {"Cache-Control": "no-store"} if is_secret else None
    return Response(body, status_code=status, media_type=JSON_TYPE, headers=headers)


def page_document(name: str, items: Sequence[Members], limit: int) -> Members:
    """A page of a list; ``next`` is the ``after`` of the following one, or null."""
    return {name: items, "next": items[-1]["id"] if len(items) == limit else None}


def feed_document(feed: StoredFeed) -> Members:
    return {
        "id": feed.id,
        "url": feed.url,
        "state": feed.state,
        "private": feed.private,
        "section": feed.section,
        "title": feed.title,
        "format": feed.format,
        "next_fetch": feed.next_fetch,
        "created_at": feed.created_at,
        "has_credentials": feed.has_credentials,
        **_polling_members(feed.polling),
    }


def _polling_members(polling: Polling) -> Members:
    return {
        "code": polling.code,
        "message": polling.message,
        "error": polling.error,
        "failures": polling.failures,
        "failing_since": polling.failing_since,
        "last_fetch": polling.last_fetch,
        "retry_after": polling.retry_after,
        "last_success": polling.last_success,
        "last_parse": polling.last_parse,
        "period": polling.period,
        "velocity": polling.velocity,
        "entries": polling.entry_count,
        "entries_since_maintenance": polling.entries_since_maintenance,
        "generated_ids": polling.generated_ids,
        "bozo_rank": polling.bozo_rank,
    }


def feed_report_document(report: FeedReport) -> Members:
    polling, standing = report.feed.polling, report.standing
    return {
        **feed_document(report.feed),
        "subscribers": report.subscribers,
        "fetch_url": polling.fetch_url or report.feed.url,
        "redirect": polling.redirect,
        "validators": polling.validators,
        "answers_304": polling.answers_304,
        "fresh_until": polling.fresh_until,
        "unchanged": polling.unchanged,
        "hints": polling.hints,
        "rekeyed": polling.rekeyed,
        "rekeyed_at": polling.rekeyed_at,
        "gap_at": polling.gap_at,
        "waiting": polling.waiting,
        "told_of_day": polling.told_of_day,
        "bytes_of_day": polling.bytes_of_day,
        "dropped": polling.dropped,
        "problems": polling.problems,
        "period_terms": report.plan.terms,
        "maintained_at": standing.maintained_at if standing else None,
        "popularity": standing.popularity if standing else None,
        "porn_rank": standing.porn_rank if standing else None,
        "is_stale": standing is not None and standing.is_stale,
        "related": report.related,
        "site": report.site,
        "push": report.push,
    }


def imported_document(imported: ImportedFeed) -> Members:
    feed = imported.feed
    return {
        "url": imported.url,
        "outcome": imported.outcome,
        "reason": imported.reason,
        "feed": None if feed is None else feed_document(feed),
        "feeds": feed_links(imported.feeds),
    }


def sight_document(sight: LookupResult) -> Members:
    """What was found at a URL: a feed, or the feeds that are named there."""
    best = sight.choice.best
    return {
        "is_feed": sight.feed is not None,
        "format": sight.feed.format if sight.feed else "",
        "title": sight.feed.feed.title if sight.feed else "",
        "entries": sight.feed.entry_count if sight.feed else 0,
        "trouble": sight.trouble,
        "feeds": feed_links(sight.choice.feeds),
        "best": best.href if best else None,
        "reason": "" if sight.feed else sight.choice.reason,
    }


def feed_links(feeds: Sequence[FeedLink]) -> list[Members]:
    return [{"url": f.href, "title": f.title, "type": f.type} for f in feeds]


def findings_document(page: FindingsPage) -> Members:
    feeds = [
        {
            "id": each.feed.id,
            "url": each.feed.url,
            "title": each.feed.title,
            "state": each.feed.state,
            "polls_per_entry": each.polls_per_entry,
            "findings": each.findings,
        }
        for each in page.feeds
    ]
    return {"feeds": feeds, "next": page.next}


def hubs_document(hubs: Sequence[PushHub]) -> Members:
    return {"hubs": [{"hub": it.hub, "counts": _counts(it)} for it in hubs]}


def _counts(hub: PushHub) -> dict[str, int]:
    """All of them, in one order."""
    counts = dict(hub.counts)
    return {what.value: counts.get(what, 0) for what in PushCount}


def explanation_document(explained: ExplainedFeed) -> Members:
    feed, explanation = explained.feed, explained.explanation
    return {
        "id": feed.id,
        "url": feed.url,
        "state": feed.state,
        "next_fetch": feed.next_fetch,
        "sentence": explanation.sentence,
        "period": feed.polling.period,
        "rate": explanation.rate,
        "rate_now": explanation.rate_now,
        "price": explanation.price,
        "hints": feed.polling.hints,
        "hints_in_force": explanation.in_force,
        "hours": explanation.hours,
        "minutes": explanation.minutes,
        "terms": explanation.terms,
        "site": explained.site,
        "push": explained.push,
    }


def subscription_document(subscription: Subscription) -> Members:
    return {
        "id": subscription.id,
        "callback": subscription.callback,
        "topic": subscription.topic,
        "feed": subscription.feed_id,
        "state": subscription.state,
        "format": subscription.format,
        "updates": subscription.updates,
        "batch": subscription.batch,
        "algorithm": subscription.algorithm,
        "has_secret": bool(subscription.secret),
        "former_secret_until": subscription.former_until,
        "created_at": subscription.created_at,
        "lease_end": subscription.lease_end,
        "from_position": subscription.from_position,
        "exhausted": subscription.exhausted,
        "ended_reason": subscription.ended_reason,
    }


def subscription_report_document(report: SubscriptionReport) -> Members:
    late = report.straggler
    return {
        **subscription_document(report.subscription),
        "straggler": None if late is None else straggler_document(late),
        "attempts": [_attempt_members(attempt) for attempt in report.attempts],
    }


def _attempt_members(attempt: Attempt) -> Members:
    return {
        "at": attempt.at,
        "position": attempt.position,
        "status": attempt.status,
        "milliseconds": attempt.milliseconds,
        "error": attempt.error,
    }


def straggler_document(straggler: Straggler) -> Members:
    return {
        "subscription": straggler.subscription.id,
        "topic": straggler.subscription.topic,
        "callback": straggler.subscription.callback,
        "position": straggler.position,
        "attempts": straggler.attempts,
        "next_try": straggler.next_try,
        "under_way": straggler.lease_id != 0,
        "failing_since": straggler.failing_since,
        "last_status": straggler.last_status,
        "last_error": straggler.last_error,
    }


def dead_document(dead: DeadRange) -> Members:
    return {
        "id": dead.id,
        "subscription": dead.subscription_id,
        "topic": dead.topic,
        "callback": dead.callback,
        "first": dead.first,
        "last": dead.last,
        "reason": dead.reason,
        "at": dead.at,
    }


def token_document(token: Token) -> Members:
    return {
        "id": token.id,
        "account": token.account.name,
        "rights": sorted(token.rights),
        "label": token.label,
        "created_at": token.created_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    }


def health_document(health: Health) -> Members:
    return {
        "ready": not health.troubles,
        "troubles": health.troubles,
        "warnings": health.warnings,
        "version": health.version,
        "uptime": round(health.uptime, 3),
        "backlog": health.backlog,
        "database": {
            "engine": health.database.engine,
            "location": health.database.location,
            "schema": health.database.version,
            "epoch": health.database.epoch,
            "head": health.database.head,
            "size_bytes": health.database.size_bytes,
            "wal_bytes": health.database.wal_bytes,
        },
    }
