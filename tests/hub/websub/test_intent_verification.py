from __future__ import annotations

from datetime import timedelta

import pytest

from hub.http import Request
from hub.http.network_errors import Blocked, TimedOut
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    FeedState,
    Format,
    NewSubscription,
    SubscriptionState,
    VerificationState,
)
from tests.support.fake_network import Scripted, agree, answered
from tests.support.fetch_targets import an_answer
from tests.support.open_hub import (
    CALLBACK,
    TOPIC,
    OpenHubScene,
    a_subscription_request,
    named_by,
)

SOON = timedelta(seconds=300)


async def subscribed(scene: OpenHubScene) -> tuple[str, object] | None:
    """Secret and lease end of the active anonymous subscription, if there is one."""
    found = await scene.storage.subscriptions.find(ANONYMOUS, TOPIC, CALLBACK)
    if found is None or found.state is not SubscriptionState.ACTIVE:
        return None
    return found.secret, found.lease_end


async def test_a_confirmed_subscription_is_active_as_it_was_asked_for(
    scene: OpenHubScene,
) -> None:
    done = await scene.subscribe(secret="s", algorithm="sha512", format="atom")
    assert done.state is VerificationState.VERIFIED
    found = await scene.storage.subscriptions.find(ANONYMOUS, TOPIC, CALLBACK)
    assert found is not None
    assert (found.secret, found.algorithm, found.format) == ("s", "sha512", Format.ATOM)
    assert found.lease_end == scene.clock.now() + SOON
    assert found.state is SubscriptionState.ACTIVE


async def test_without_a_format_a_subscription_is_as_is(scene: OpenHubScene) -> None:
    await scene.subscribe()
    found = await scene.storage.subscriptions.find(ANONYMOUS, TOPIC, CALLBACK)
    assert found is not None
    assert found.format is Format.AS_IS


async def test_the_question_says_the_lease_and_the_topic(scene: OpenHubScene) -> None:
    await scene.subscribe(verify_token="theirs")
    (query,) = scene.callbacks.queries
    assert query["hub.lease_seconds"] == "300"
    assert query["hub.topic"] == TOPIC
    assert query["hub.verify_token"] == "theirs"


async def test_a_renewal_takes_over_only_once_it_is_verified(
    scene: OpenHubScene,
) -> None:
    await scene.subscribe(secret="old")
    before = await subscribed(scene)
    scene.clock.advance(60)
    scene.callbacks.answer_with(404)
    failed = await scene.subscribe(secret="new")
    assert failed.state is VerificationState.FAILED
    assert await subscribed(scene) == before
    scene.callbacks.answer_with(agree)
    await scene.subscribe()
    assert await subscribed(scene) == ("", scene.clock.now() + SOON)


@pytest.mark.parametrize("status", [300, 302, 404, 410, 500, 503])
async def test_an_answer_that_is_no_yes_is_final(
    scene: OpenHubScene, status: int
) -> None:
    scene.callbacks.answer_with(status)
    done = await scene.subscribe()
    assert (done.state, done.attempts) == (VerificationState.FAILED, 1)
    assert done.last is not None
    assert done.last.status == status
    assert str(status) in done.last.reason
    assert await subscribed(scene) is None


async def test_a_callback_that_does_not_answer_is_asked_three_times(
    scene: OpenHubScene,
) -> None:
    scene.callbacks.answer_with(TimedOut("no answer in time"))
    done = await scene.subscribe()
    for seconds, asked in ((9, 1), (1, 2), (59, 2), (1, 3)):
        assert done.state is VerificationState.PENDING
        scene.clock.advance(seconds)
        for each in await scene.storage.verifications.due(
            scene.clock.now(), per_host=1, limit=1
        ):
            await scene.intents.verify(await scene.hold(each))
            done = each
        assert len(scene.callbacks.requests) == asked
    assert await scene.storage.verifications.next_due() is None
    assert scene.callbacks.modes == ["subscribe"] * 3


async def test_a_private_address_is_not_tried_again(scene: OpenHubScene) -> None:
    scene.callbacks.answer_with(Blocked())
    done = await scene.subscribe()
    assert done.state is VerificationState.FAILED


async def test_a_confirmed_unsubscription_ends_it_without_a_denial(
    scene: OpenHubScene,
) -> None:
    await scene.subscribe()
    done = await scene.unsubscribe()
    assert done.state is VerificationState.VERIFIED
    assert await subscribed(scene) is None
    assert await scene.storage.subscriptions.ending(scene.clock.now(), 9) == []
    assert "hub.lease_seconds" not in scene.callbacks.queries[-1]


async def test_a_failed_unsubscription_changes_nothing(scene: OpenHubScene) -> None:
    await scene.subscribe(secret="s")
    before = await subscribed(scene)
    scene.callbacks.answer_with(answered(body=b"no"))
    done = await scene.unsubscribe()
    assert done.state is VerificationState.FAILED
    assert done.last is not None
    assert done.last.excerpt == "no"
    assert await subscribed(scene) == before


async def test_nobody_is_asked_about_what_is_not_subscribed(
    scene: OpenHubScene,
) -> None:
    done = await scene.unsubscribe()
    assert done.state is VerificationState.NEEDLESS
    assert scene.callbacks.requests == []


async def test_another_accounts_subscription_is_out_of_reach(
    scene: OpenHubScene,
) -> None:
    feed = await scene.add_feed()
    ours = await scene.storage.subscriptions.add(
        NewSubscription(
            account=OPERATOR,
            topic=TOPIC,
            feed_id=feed.id,
            callback=CALLBACK,
            secret="ours",
        ),
        scene.clock.now(),
    )
    assert (await scene.unsubscribe()).state is VerificationState.NEEDLESS
    await scene.subscribe(secret="theirs")
    await scene.unsubscribe()
    assert await scene.storage.subscriptions.get(ours.id) == ours


async def test_a_refused_topic_is_denied_to_the_callback(scene: OpenHubScene) -> None:
    scene.fetches.answers = lambda request: named_by("")
    done = await scene.subscribe()
    assert done.state is VerificationState.DENIED
    (query,) = scene.callbacks.queries
    assert query["hub.mode"] == "denied"
    assert query["hub.topic"] == TOPIC
    assert query["hub.reason"] == "the topic does not name this hub"
    assert await scene.storage.feeds.find(TOPIC) is None


async def test_a_denial_that_nobody_hears_is_a_denial(scene: OpenHubScene) -> None:
    scene.fetches.answers = lambda request: an_answer(404)
    scene.callbacks.answer_with(TimedOut("no answer in time"))
    done = await scene.subscribe()
    assert done.state is VerificationState.DENIED
    assert done.last is not None
    assert done.last.status == 0
    assert "404" in done.last.reason


async def test_a_topic_that_is_down_is_tried_three_times_and_then_denied(
    scene: OpenHubScene,
) -> None:
    scene.fetches.answers = lambda request: an_answer(503)
    token = await scene.request(a_subscription_request())
    for seconds in (0, 10, 60):
        assert scene.callbacks.requests == []
        scene.clock.advance(seconds)
        done = await scene.settle(token)
    assert done.state is VerificationState.DENIED
    assert len(scene.fetches.requests) == 3
    assert scene.callbacks.modes == ["denied"]


async def test_a_topic_removed_while_the_callback_was_asked_is_denied(
    scene: OpenHubScene,
) -> None:
    feed = await scene.add_feed()

    async def while_it_is_removed(request: Request) -> Scripted:
        await scene.storage.feeds.set_state(
            feed.id, FeedState.REMOVED, scene.clock.now()
        )
        return agree(request)

    scene.callbacks.answer_with(while_it_is_removed, agree)
    done = await scene.subscribe()
    assert done.state is VerificationState.DENIED
    assert scene.callbacks.modes == ["subscribe", "denied"]
    assert "removed" in scene.callbacks.queries[-1]["hub.reason"]
    assert await subscribed(scene) is None


async def test_what_was_asked_for_again_meanwhile_is_confirmed_all_the_same(
    scene: OpenHubScene,
) -> None:
    await scene.add_feed()

    async def while_it_is_asked_for_again(request: Request) -> Scripted:
        await scene.request(a_subscription_request(secret="new"))
        return agree(request)

    scene.callbacks.answer_with(while_it_is_asked_for_again, agree)
    first = await scene.subscribe(secret="old")
    assert first.state is VerificationState.VERIFIED
    assert await subscribed(scene) == ("old", scene.clock.now() + SOON)
