"""What an account asked for is granted once its callback has confirmed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub.services.account_subscriptions import SubscriptionRequest
from protocols.websub.signatures import OF_OLD
from storage.records import (
    Format,
    Subscription,
    SubscriptionId,
    Verification,
)
from tests.support.services import Hub, open_hub

TOPIC = "https://example.org/feed.xml"


async def stored(hub: Hub, **changes: object) -> Verification:
    """As it comes back from the database."""
    values = {
        "topic": TOPIC,
        "callback": "https://you.example/callback",
        "algorithm": OF_OLD,
        "format": None,
        **changes,
    }
    asked = SubscriptionRequest(**values)  # type: ignore[arg-type]
    now = hub.clock.now()
    verifications = hub.storage.verifications
    assert await verifications.add(
        asked.as_verification("t"), now, most=9, most_of_host=9
    )
    [found] = await verifications.due(now, per_host=9, limit=9)
    return found


async def subscribed(hub: Hub) -> list[Subscription]:
    return await hub.storage.subscriptions.page(after=SubscriptionId(0), limit=9)


@pytest.mark.parametrize("format", [None, Format.JSON, Format.ATOM])
async def test_it_is_granted_as_it_was_asked_for(
    tmp_path: Path, format: Format | None
) -> None:
    async with open_hub(tmp_path) as hub:
        asked = await stored(hub, secret="s", format=format, has_digest=True)

        assert await hub.services.superfeedr.grant(asked) == ""

        [made] = await subscribed(hub)
        assert (made.secret, made.algorithm) == ("s", "sha1+sha256")
        assert made.format is (format or Format.BY_TOPIC)
        assert made.lease_end is None
        hub.clock.advance(86_400)
        [due] = await hub.storage.digests.due(hub.clock.now(), 9)
        assert due.id == made.id


async def test_granted_twice_it_is_one(tmp_path: Path) -> None:
    """The hub may stop after it was granted and before that was noted."""
    async with open_hub(tmp_path) as hub:
        asked = await stored(hub)
        for _ in range(2):
            assert await hub.services.superfeedr.grant(asked) == ""
        assert len(await subscribed(hub)) == 1


@pytest.mark.parametrize(
    ("field", "url"),
    [("topic", "http://inside.example/feed"), ("callback", "http://inside.example/")],
)
async def test_why_it_cannot_be_is_told_and_not_raised(
    tmp_path: Path, field: str, url: str
) -> None:
    async with open_hub(tmp_path) as hub:
        asked = await stored(hub, **{field: url})
        assert f"hub.{field}" in await hub.services.superfeedr.grant(asked)
        assert await subscribed(hub) == []
