"""Asking a topic's publisher whether somebody may subscribe to it.

This is a convention of Superfeedr, which WebSub 5.2 allows: "hub forwards all params +
headers of the subscribe request" (Superfeedr 1.15) to the URL that the operator has set
for the feed, or else to the one that the topic names with ``rel="validate"``. A 2xx
allows the subscription; anything else refuses it, and the text of a 401 is passed on.
Secrets are never sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

import msgspec

from hub.core.push.hub_offers import validator_of_feed
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.websub.callback_challenge import excerpt_of
from protocols.urls import host_name, is_web_url
from storage.contract import Storage
from storage.packing import unpack_head
from storage.records import StoredFeed

LIMITS: Final = ResponseLimits(seconds=10.0, idle_seconds=10.0)
ASKED_SECONDS: Final = 20.0
"""Seconds in all, including the wait for the turn of the publisher's host."""
MOST_READ: Final = 1_024
"""Bytes of an answer that are read."""
NONE: Final[Mapping[str, str]] = MappingProxyType({})
REFUSED: Final = "the topic's publisher refuses the subscription"
UNREACHABLE: Final = "the topic's publisher could not be asked"
FORM: Final = "application/x-www-form-urlencoded"


class Validator(msgspec.Struct, frozen=True):
    """The URL that is asked about a feed's subscriptions. A URL that a publisher names
    may lead only where its hub may be; one that the operator has set, where callbacks
    may."""

    url: str
    purpose: Purpose


class PublisherValidation:
    def __init__(
        self,
        storage: Storage,
        network: Network,
        user_agent: str,
        limiter: HostLimiter,
    ) -> None:
        self._feeds = storage.feeds
        self._log = storage.log
        self._network = network
        self._user_agent = user_agent
        self._limiter = limiter

    async def refusal(
        self,
        feed: StoredFeed,
        parameters: Mapping[str, str],
        headers: Mapping[str, str] = NONE,
    ) -> str:
        """Why nobody may subscribe with these parameters; "" if the publisher allows
        it, or has no URL to ask. ``headers``: of the request. Raises `StorageError`."""
        validator = await self.validator_of(feed)
        if validator is None:
            return ""
        return await self.ask(validator, parameters, headers)

    async def validator_of(self, feed: StoredFeed) -> Validator | None:
        """Whom to ask about the feed; None: nobody. Raises `StorageError`.

        The operator's setting takes precedence over what the topic itself names.
        """
        if set_for_it := await self._feeds.subscription_callback(feed.id):
            return Validator(set_for_it, Purpose.CALLBACK)
        named = feed.polling.validator or await self._named_by_document(feed)
        return Validator(named, Purpose.HUB) if named else None

    async def ask(
        self,
        validator: Validator,
        parameters: Mapping[str, str],
        headers: Mapping[str, str] = NONE,
    ) -> str:
        """Like `refusal`, for a publisher whose URL is known."""
        url = validator.url
        if not is_web_url(url):
            return UNREACHABLE
        request = Request(
            method="POST",
            url=url,
            purpose=validator.purpose,
            headers={
                **headers,
                "User-Agent": self._user_agent,
                "Content-Type": FORM,
            },
            body=urlencode(parameters).encode(),
            limits=LIMITS,
            cuts_body=True,
            cut=MOST_READ,
        )
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                await self._wait_for_turn(validator)
                answer = await self._network.send(request)
        except (NetworkError, TimeoutError):
            return UNREACHABLE
        return _word_of(answer)

    async def _wait_for_turn(self, validator: Validator) -> None:
        host = host_name(validator.url)
        if not self._network.is_exempt(host, validator.purpose):
            await self._limiter.wait(host, RequestKind.TOPIC)

    async def _named_by_document(self, feed: StoredFeed) -> str:
        return validator_of_feed(unpack_head(await self._log.feed_head(feed.id)))


def _word_of(answer: Answer) -> str:
    if 200 <= answer.status < 300:
        return ""
    if answer.status != HTTPStatus.UNAUTHORIZED:
        return REFUSED
    return excerpt_of(answer.body) or REFUSED
