"""A notification as the request that brings it, whatever it is sent for."""

from __future__ import annotations

from functools import partial
from typing import Final

from hub.beside import LARGE_BYTES, run_beside
from hub.net import Limits, Purpose, Request
from protocols.websub.delivery import Delivery, delivery_headers

LIMITS: Final = Limits(seconds=20.0, idle_seconds=20.0)


async def request_of(delivery: Delivery) -> Request:
    """Signed, if the subscription has a secret. WebSub 7: "the response body MUST be
    ignored"."""
    signing = partial(delivery_headers, delivery)
    is_large = len(delivery.body) > LARGE_BYTES and delivery.secret
    return Request(
        method="POST",
        url=delivery.callback,
        purpose=Purpose.CALLBACK,
        headers=await run_beside(signing) if is_large else signing(),
        body=delivery.body,
        limits=LIMITS,
        cuts_body=True,
    )
