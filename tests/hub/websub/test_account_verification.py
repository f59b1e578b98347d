"""What accounts ask for with ``hub.verify=async``: stored until it is confirmed."""

from __future__ import annotations

import asyncio

import pytest

from hub.http.network_errors import Unreachable
from storage.records import (
    OPERATOR,
    AccountRequest,
    Format,
    NewSubscription,
    NewVerification,
    SubscriptionState,
    VerificationMode,
    VerificationState,
)
from tests.support.fake_network import Script, agree
from tests.support.open_hub import CALLBACK, TOPIC, OpenHubScene
from tests.support.waiting import eventually

ACCOUNT_REQUEST = AccountRequest(
    format=Format.JSON, has_digest=True, shown=(("my", "own"),)
)


async def put_off(
    scene: OpenHubScene, mode: VerificationMode = VerificationMode.SUBSCRIBE
) -> str:
    """A request of an account, as the API stores it; its token."""
    new = NewVerification(
        account=OPERATOR,
        mode=mode,
        topic=TOPIC,
        callback=CALLBACK,
        token="t",
        lease_seconds=315_359_999,
        secret="s",
        verify_token="vt",
        account_request=ACCOUNT_REQUEST,
    )
    assert await scene.storage.verifications.add(
        new, scene.clock.now(), most=9, most_of_host=9
    )
    return "t"


async def subscribe(scene: OpenHubScene) -> None:
    feed = await scene.add_feed()
    new = NewSubscription(
        account=OPERATOR, topic=TOPIC, feed_id=feed.id, callback=CALLBACK
    )
    await scene.storage.subscriptions.add(new, scene.clock.now())


async def test_the_callback_is_asked_as_superfeedr_asks_and_the_wish_granted(
    scene: OpenHubScene,
) -> None:
    done = await scene.settle(await put_off(scene))

    assert done.state is VerificationState.VERIFIED
    [query] = scene.callbacks.queries
    assert query["hub.callback"] == CALLBACK
    assert query["hub.lease_seconds"] == "315359999"
    assert query["hub.verify_token"] == "vt"
    [granted] = scene.accounts.granted
    assert (granted.account, granted.secret, granted.account_request) == (
        OPERATOR,
        "s",
        ACCOUNT_REQUEST,
    )


async def test_no_topic_is_looked_at_as_for_strangers(scene: OpenHubScene) -> None:
    await scene.settle(await put_off(scene))
    assert scene.fetches.requests == []


async def test_a_callback_that_refuses_is_heard_and_nobody_is_told(
    scene: OpenHubScene,
) -> None:
    scene.callbacks.answer_with(404)
    done = await scene.settle(await put_off(scene))
    assert done.state is VerificationState.FAILED
    assert scene.accounts.granted == []
    assert len(scene.callbacks.queries) == 1


async def test_what_cannot_be_had_is_noted_and_nobody_is_told(
    scene: OpenHubScene,
) -> None:
    scene.accounts.refusal = "hub.topic: the publisher does not allow it"
    done = await scene.settle(await put_off(scene))
    assert done.state is VerificationState.DENIED
    assert done.last is not None
    assert done.last.reason == scene.accounts.refusal
    assert len(scene.callbacks.queries) == 1


async def test_silence_is_asked_again(scene: OpenHubScene) -> None:
    scene.callbacks.answer_with(Unreachable("nobody there"))
    waiting = await scene.settle(await put_off(scene))
    assert waiting.state is VerificationState.PENDING

    scene.callbacks.answer_with(agree)
    scene.clock.advance(10)
    done = await scene.settle("t")
    assert done.state is VerificationState.VERIFIED
    assert len(scene.accounts.granted) == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(agree, SubscriptionState.ENDED), (404, SubscriptionState.ACTIVE)],
)
async def test_an_end_takes_the_word_of_the_callback_too(
    scene: OpenHubScene, answer: Script, expected: SubscriptionState
) -> None:
    await subscribe(scene)
    scene.callbacks.answer_with(answer)
    await scene.settle(await put_off(scene, VerificationMode.UNSUBSCRIBE))

    found = await scene.storage.subscriptions.find(OPERATOR, TOPIC, CALLBACK)
    assert found is not None
    assert found.state is expected
    [query] = scene.callbacks.queries
    assert query["hub.callback"] == CALLBACK


async def test_the_verifier_looks_at_no_topic_for_accounts(
    scene: OpenHubScene,
) -> None:
    await put_off(scene)
    working = asyncio.create_task(scene.verifier.run())
    await eventually(lambda: bool(scene.accounts.granted))
    working.cancel()
    await asyncio.wait({working})
    assert scene.fetches.requests == []
    assert len(scene.accounts.granted) == 1
