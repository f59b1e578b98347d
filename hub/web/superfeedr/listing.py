"""``hub.mode=list``: an account's subscriptions, in two shapes."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from hub.core.status.feed_status import shown_status
from hub.web.superfeedr.answers import json_answer
from hub.web.superfeedr.calls import Call, Mode, Modes
from hub.web.superfeedr.search import read_search, search_of
from protocols.superfeedr.json import status_object
from protocols.superfeedr.parameters import Parameters
from storage.contract import ListingStore
from storage.records import Format, Listed, Listing, ListingSearch, Right, StoredFeed

DEFAULT_PAGE = 20
LARGEST_PAGE = 500
MOST_PAGES = 10**9

_EVERY = frozenset({"%", "http%", "http%://%"})
"""Patterns that all callbacks match; angular-superfeedr sends one with each list."""

Members = dict[str, object]


class SubscriptionList:
    def __init__(self, listings: ListingStore) -> None:
        self._listings = listings

    def modes(self) -> Modes:
        return {"list": Mode(answer=self.answer, right=Right.LIST)}

    async def answer(self, call: Call) -> Response:
        """A plain array, as it was at first; with ``detailed`` an object around it."""
        given = call.parameters
        page = given.number("page", 1, least=1, most=MOST_PAGES)
        by_page = given.number("by_page", DEFAULT_PAGE, least=1, most=LARGEST_PAGE)
        is_detailed = given.flag("detailed")
        pairs = search_of(given, "search")
        search = read_search(pairs, "search")
        listing = Listing(items=(), total=0)
        if search is not None:
            listing = await self._listings.page(
                call.principal.account.id,
                _with_callback(search, given),
                skip=(page - 1) * by_page,
                limit=by_page,
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
    """An older parameter, ``hub.callback``, with ``%`` for whatever."""
    callback = given.one("hub.callback").strip()
    if not callback:
        return search
    if callback in _EVERY:
        return search
    if "%" in callback:
        return replace(search, callback_like=callback)
    return replace(search, callback=callback)


def _listed(listed: Listed, is_detailed: bool) -> Members:
    subscription, feed = listed.subscription, listed.feed
    members: Members = {
        "title": feed.title,
        "url": subscription.topic,
    }
    if is_detailed:
        status = shown_status(feed, listed.standing)
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
    """None of what is sent as it is."""
    if format is Format.BY_TOPIC:
        return None if feed.polling.is_resource else Format.ATOM.value
    return None if format is Format.AS_IS else format.value
