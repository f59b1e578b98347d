"""A notification as the request that brings it, whatever it is sent for."""

from __future__ import annotations

from functools import partial
from typing import Final

from hub.delivery.notification_counter import lease_end
from hub.delivery.notifications import Document
from hub.http import Purpose, Request, ResponseLimits
from hub.runtime.offloading import LARGE_BYTES, run_in_thread
from protocols.websub.delivery import WebhookDelivery, delivery_headers
from storage.records import Position, Subscription

LIMITS: Final = ResponseLimits(seconds=20.0, idle_seconds=20.0)


def delivery_of(
    subscription: Subscription,
    document: Document,
    credits: int | None,
    *,
    id: str,
    at: int,
    hub_url: str,
    user_agent: str,
    retries: int = 0,
    missed: tuple[Position, Position] | None = None,
) -> WebhookDelivery:
    """A document for one subscriber, ``at`` a moment in Unix seconds. ``credits``: what
    its account has left, None where it has none."""
    return WebhookDelivery(
        topic=subscription.topic,
        callback=subscription.callback,
        hub=hub_url,
        content_type=document.content_type,
        body=document.body,
        id=id,
        timestamp=at,
        secret=subscription.secret,
        former_secret=_former_secret(subscription, at),
        algorithm=subscription.algorithm,
        retries=retries,
        missed=missed,
        credits=credits,
        expires=None if credits is None else lease_end(subscription, at),
        user_agent=user_agent,
    )


def _former_secret(subscription: Subscription, at: int) -> str:
    """The one that still signs as well: it is forgotten only some time later.

    ``at`` are whole seconds: that it has ended within the second counts.
    """
    until = subscription.former_until
    is_over = until is None or until.timestamp() < at + 1
    return "" if is_over else subscription.former_secret


async def request_of(delivery: WebhookDelivery) -> Request:
    """Signed, if the subscription has a secret. WebSub 7: "the response body MUST be
    ignored"."""
    if len(delivery.body) > LARGE_BYTES and delivery.secret:
        headers = await run_in_thread(partial(delivery_headers, delivery))
    else:
        headers = delivery_headers(delivery)
    return Request(
        method="POST",
        url=delivery.callback,
        purpose=Purpose.CALLBACK,
        headers=headers,
        body=delivery.body,
        limits=LIMITS,
        cuts_body=True,
    )
