"""``hub.mode=list``: an account's subscriptions in two shapes, with filters.

``search[feed.url]=…`` here and ``hub.callback[endpoint]…`` in ``retrieve`` take the
same keys. The keys of XMPP find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace
from starlette.responses import Response

from hub.core.status.feed_status import shown_status
from hub.services import SelectedSubscriptionService
from hub.web.superfeedr.answers import json_answer
from hub.web.superfeedr.calls import Call, Mode, Modes
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.json_notifications import status_object
from protocols.superfeedr.parameters import Parameters
from storage.records import (
    Bound,
    BoundComparison,
    Format,
    ListedSubscription,
    Listing,
    ListingSearch,
    StoredFeed,
    TokenScope,
)

KEYS = (
    "format",
    "feed.url",
    "feed.inurl",
    "feed.hostname",
    "feed.velocity",
    "feed.popularity",
    "feed.bozo",
    "feed.porn",
    "endpoint.url",
    "endpoint.inurl",
    "endpoint.hostname",
)
OF_XMPP = ("endpoint.jid", "endpoint.domain")

_BOUND = re.compile(r"\s*(>=|<=|>|<|=|)\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*")
_INSPECTED = re.compile(r'[{,]\s*:?"?([a-z_.]+)"?\s*(?:=>|:)\s*"([^"]*)"')


def search_of(given: Parameters, name: str) -> dict[str, str]:
    """The keys and values under a parameter, as they came. Raises `InvalidValue`.

    Ruby clients send a hash as Ruby prints it: ``{"feed.url"=>"http://…"}``.
    """
    found = given.under(name)
    written = given.one(name)
    if written:
        pairs = _INSPECTED.findall(written)
        if not pairs:
            raise InvalidValue(name, f"{name}[KEY]=…, KEY one of {_KNOWN}", written)
        found |= dict(pairs)
    return found


def read_search(pairs: Mapping[str, str], name: str) -> ListingSearch | None:
    """Return the filters, or None if nothing can match. Raises `InvalidValue` naming
    ``name[key]``."""
    for key in pairs:
        if key not in KEYS + OF_XMPP:
            raise InvalidValue(f"{name}[{key[:40]}]", f"one of the keys {_KNOWN}")
    if any(key in pairs for key in OF_XMPP):
        return None
    return ListingSearch(
        format=_format(pairs.get("format", ""), name),
        topic=pairs.get("feed.url", "").strip(),
        topic_contains=pairs.get("feed.inurl", "").strip(),
        topic_host=pairs.get("feed.hostname", "").strip().lower(),
        callback=pairs.get("endpoint.url", "").strip(),
        callback_contains=pairs.get("endpoint.inurl", "").strip(),
        callback_host=pairs.get("endpoint.hostname", "").strip().lower(),
        velocity=_bound(pairs, name, "feed.velocity"),
        popularity=_bound(pairs, name, "feed.popularity"),
        bozo_rank=_bound(pairs, name, "feed.bozo"),
        porn_rank=_bound(pairs, name, "feed.porn"),
    )


def _format(value: str, name: str) -> Format | None:
    if not value:
        return None
    try:
        return Format(value.strip().lower())
    except ValueError:
        raise InvalidValue(f"{name}[format]", "json or atom", value) from None


def _bound(pairs: Mapping[str, str], name: str, key: str) -> Bound | None:
    if key not in pairs:
        return None
    found = _BOUND.fullmatch(pairs[key])
    if found is None:
        expected = "a number, or one after >, >=, < or <="
        raise InvalidValue(f"{name}[{key}]", expected, pairs[key])
    return Bound(BoundComparison(found[1] or "="), float(found[2]))


_KNOWN = ", ".join(KEYS)


DEFAULT_PAGE = 20
LARGEST_PAGE = 500
MOST_PAGES = 10**9

_EVERY = frozenset({"%", "http%", "http%://%"})
"""Patterns that match every callback; angular-superfeedr sends one with each list."""

Members = dict[str, object]


class SubscriptionList:
    def __init__(self, selected: SelectedSubscriptionService) -> None:
        self._selected = selected

    def modes(self) -> Modes:
        return {"list": Mode(answer=self.answer, scope=TokenScope.LIST)}

    async def answer(self, call: Call) -> Response:
        """Answer with an array, as at first; ``detailed``: with an object around it."""
        given = call.parameters
        page = given.number("page", 1, least=1, most=MOST_PAGES)
        by_page = given.number("by_page", DEFAULT_PAGE, least=1, most=LARGEST_PAGE)
        is_detailed = given.flag("detailed")
        pairs = search_of(given, "search")
        search = read_search(pairs, "search")
        listing = Listing(items=(), total=0)
        if search is not None:
            listing = await self._selected.listing(
                call.principal.account.id,
                _with_callback(search, given),
                page=page,
                by_page=by_page,
                has_total=is_detailed,
            )
        listed = [_listed(each, is_detailed) for each in listing.items]
        if not is_detailed:
            return json_answer(call, listed)
        meta = {
            "total": listing.total,
            "page": page,
            "by_page": by_page,
            "byPage": by_page,
            "search": pairs,
        }
        return json_answer(call, {"subscriptions": listed, "meta": meta})


def _with_callback(search: ListingSearch, given: Parameters) -> ListingSearch:
    """Add the older parameter ``hub.callback``, in which ``%`` matches anything."""
    callback = given.one("hub.callback").strip()
    if not callback:
        return search
    if callback in _EVERY:
        return search
    if "%" in callback:
        return replace(search, callback_like=callback)
    return replace(search, callback=callback)


def _listed(listed: ListedSubscription, is_detailed: bool) -> Members:
    subscription, feed = listed.subscription, listed.feed
    members: Members = {
        "title": feed.title,
        "url": subscription.topic,
    }
    if is_detailed:
        status = shown_status(feed, listed.statistics)
        members["status"] = status_object(status, topic=subscription.topic)
    return {
        "subscription": {
            "format": _shown_format(subscription.format, feed),
            "endpoint": subscription.callback,
            "secret": None,
            "feed": members,
        }
    }


def _shown_format(format: Format, feed: StoredFeed) -> str | None:
    """The format's name; None for a subscription that receives its topic unchanged."""
    if format is Format.BY_TOPIC:
        return None if feed.polling.is_resource else Format.ATOM.value
    return None if format is Format.AS_IS else format.value
