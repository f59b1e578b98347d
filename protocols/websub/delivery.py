"""The headers of a notification: one record, or several, to one callback."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from protocols.http import TRACEPARENT, HeaderLink, format_link_header, header_value
from protocols.websub.signatures import sign_webhook, signature_headers

SHARED_HEADERS_KEPT = 256
"""The number of combinations of topic and format whose headers are cached."""


class WebhookDelivery(Struct, frozen=True, kw_only=True, gc=False):
    """A notification that is about to be sent.

    ``topic`` and ``hub`` are the URLs the subscriber knows. ``id`` stays the same over
    retries (see `notification_id`); ``timestamp`` is of this attempt, in Unix seconds.
    ``former_secret``: the secret that was replaced a short time ago, since receivers
    may know either. ``algorithm``: one of `protocols.websub.signatures.SIGNINGS`.
    ``missed`` are the first and last position of records that were trimmed before this
    subscriber got them. ``credits``: what is left to the subscriber's account;
    ``expires``: when the subscription does, in Unix seconds. ``is_test``: it is no
    news, somebody tries the callback. ``traceparent``: the trace that it is part of.
    """

    topic: str
    callback: str
    hub: str
    content_type: str
    body: bytes
    id: str
    timestamp: int
    secret: str = ""
    former_secret: str = ""
    algorithm: str = "sha256"
    retries: int = 0
    missed: tuple[int, int] | None = None
    credits: int | None = None
    expires: int | None = None
    user_agent: str = "Fanfare"
    is_test: bool = False
    traceparent: str = ""


def notification_id(epoch: str, position: int, subscription: int) -> str:
    """The same for every attempt, without the full stop that separates signed
    values.
    """
    return f"{epoch}-{position}-{subscription}"


def delivery_headers(delivery: WebhookDelivery) -> dict[str, str]:
    """All headers of the request that the hub chooses.

    Signatures are there "when, and only when" the subscription has a secret.
    """
    headers = _shared_headers(
        delivery.topic, delivery.hub, delivery.content_type, delivery.user_agent
    ).copy()
    headers["X-PubSubHubbub-Callback"] = header_value(delivery.callback)
    headers["webhook-id"] = delivery.id
    headers["webhook-timestamp"] = str(delivery.timestamp)
    if delivery.secret:
        secret, id, at = delivery.secret, delivery.id, delivery.timestamp
        body, former = delivery.body, delivery.former_secret
        # WebSub has one signature; Standard Webhooks has "multiple signatures (space
        # delimited)", so that secrets change "with no downtime".
        headers |= signature_headers(delivery.algorithm, secret, body)
        signatures = sign_webhook(secret, id, at, body)
        if former:
            signatures = f"{signatures} {sign_webhook(former, id, at, body)}"
        headers["webhook-signature"] = signatures
    if delivery.credits is not None:
        headers["X-Superfeedr-Credits"] = str(delivery.credits)
    if delivery.expires is not None:
        headers["X-Superfeedr-PubSubHubbub-Expire"] = str(delivery.expires)
    if delivery.retries:
        headers["X-Superfeedr-Retried"] = str(delivery.retries)
    if delivery.missed is not None:
        first, last = delivery.missed
        headers["Fanfare-Missed"] = f"{first}-{last}"
    if delivery.is_test:
        headers["Fanfare-Test"] = "true"
    if delivery.traceparent:
        headers[TRACEPARENT] = delivery.traceparent
    return headers


@lru_cache(maxsize=SHARED_HEADERS_KEPT)
def _shared_headers(
    topic: str, hub: str, content_type: str, user_agent: str
) -> dict[str, str]:
    links = (HeaderLink(href=hub, rel="hub"), HeaderLink(href=topic, rel="self"))
    return {
        "User-Agent": header_value(user_agent),
        "Content-Type": header_value(content_type),
        "Link": format_link_header(links),
        "X-PubSubHubbub-Topic": header_value(topic),
    }
