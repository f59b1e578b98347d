"""hub.mode=subscribe and unsubscribe at ``/``."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx2
import pytest
from msgspec.structs import replace

from hub.http.network_errors import Unreachable
from hub.services.account_subscriptions import MOST_WAITING_OF_ACCOUNTS
from hub.services.open_hub_requests import MOST_PENDING, MOST_PENDING_OF_HOST
from storage.records import (
    ANONYMOUS,
    Format,
    NewVerification,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    Verification,
    VerificationMode,
)
from tests.hub.web.superfeedr.conftest import Ask, make_token
from tests.support.fake_network import Script, Scripted, agree
from tests.support.library import Library, topic_of
from tests.support.services import Hub

TOPIC = "https://example.org/feed.xml"
CALLBACK = "https://you.example/callback?id=1"
SILENT = Unreachable("the connection was refused")


async def subscribed(hub: Hub) -> list[Subscription]:
    return await hub.storage.subscriptions.page(after=SubscriptionId(0), limit=100)


def wanted(**parameters: str) -> dict[str, str]:
    return {
        "hub_mode": "subscribe",
        "hub_topic": TOPIC,
        "hub_callback": CALLBACK,
        **parameters,
    }


async def test_subscribing_is_204_and_asks_nobody(hub: Hub, ask: Ask) -> None:
    answer = await ask(**wanted(hub_secret="s3cret"))
    assert (answer.status_code, answer.content) == (204, b"")
    [made] = await subscribed(hub)
    assert (made.topic, made.callback, made.secret) == (TOPIC, CALLBACK, "s3cret")
    assert made.algorithm == "sha1+sha256"
    assert made.format is Format.BY_TOPIC
    assert made.lease_end is None
    assert not hub.network.requests


async def test_an_unknown_feed_is_fetched_before_the_answer_and_private(
    hub: Hub, ask: Ask
) -> None:
    await ask(**wanted())
    feed = await hub.storage.feeds.find(TOPIC)
    assert feed is not None
    assert hub.poller.fetched == [feed.id]
    assert feed.private


@pytest.mark.parametrize(
    ("parameters", "accept", "format"),
    [
        ({"format": "json"}, "*/*", Format.JSON),
        ({"format": "ATOM"}, "application/json", Format.ATOM),
        ({}, "application/json", Format.JSON),
        ({}, "*/*", Format.BY_TOPIC),
    ],
)
async def test_the_format_is_asked_for_or_accepted(
    hub: Hub, ask: Ask, parameters: dict[str, str], accept: str, format: Format
) -> None:
    assert (await ask(accept, **wanted(**parameters))).status_code == 204
    assert (await subscribed(hub))[0].format is format


@pytest.mark.parametrize("format", ["", "part", "rss"])
async def test_without_a_format_it_is_left_to_what_there_will_be_to_send(
    hub: Hub, ask: Ask, format: str
) -> None:
    hub.poller.format = format
    assert (await ask(**wanted())).status_code == 204
    assert (await subscribed(hub))[0].format is Format.BY_TOPIC


@pytest.mark.parametrize("fragment", ["[[[", "%24.a[(@.length-1)]", ".a::before"])
@pytest.mark.parametrize("verify", ["", "async"])
async def test_a_path_that_cannot_be_read_is_refused_at_the_door(
    hub: Hub, ask: Ask, fragment: str, verify: str
) -> None:
    topic = f"{TOPIC}#{fragment}"
    answer = await ask(**wanted(hub_topic=topic, hub_verify=verify))
    assert answer.status_code == 422
    assert "hub.topic" in answer.text
    assert "path" in answer.text
    assert not await subscribed(hub)
    assert await hub.storage.feeds.find(topic) is None


@pytest.mark.parametrize("path", ["/", "/hubbub"])
async def test_a_ping_may_have_a_fragment(
    anybody: httpx2.AsyncClient, path: str
) -> None:
    form = {"hub.mode": "publish", "hub.url": f"{TOPIC}#.h-entry"}
    assert (await anybody.post(path, data=form)).status_code == 204


async def test_subscribing_again_takes_the_new_secret(hub: Hub, ask: Ask) -> None:
    await ask(**wanted(hub_secret="one"))
    await ask(**wanted(hub_secret="two", hub_signature_algorithm="sha256"))
    [made] = await subscribed(hub)
    assert (made.secret, made.algorithm) == ("two", "sha256")


async def test_a_fragment_is_part_of_the_topic(hub: Hub, ask: Ask) -> None:
    await ask(**wanted())
    await ask(**wanted(hub_topic=f"{TOPIC}#.h-entry"))
    assert [each.topic for each in await subscribed(hub)] == [
        TOPIC,
        f"{TOPIC}#.h-entry",
    ]


@pytest.mark.parametrize(
    ("format", "content_type"),
    [
        ("atom", "application/atom+xml"),
        ("json", "application/json; charset=utf-8"),
    ],
)
async def test_with_retrieve_the_feed_is_the_answer(
    ask: Ask, format: str, content_type: str
) -> None:
    answer = await ask(**wanted(retrieve="true", format=format))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == content_type
    assert "status" in answer.text


async def test_as_many_entries_as_asked_for_are_the_answer(hub: Hub, ask: Ask) -> None:
    library = await Library.open(hub, account="other")
    await library.add_feed("news")
    await library.publish("news", "a", "b", "c")
    topic = topic_of("news")

    answer = await ask(
        **wanted(hub_topic=topic, retrieve="true", format="json", count="2")
    )

    assert [each["title"] for each in answer.json()["items"]] == ["c", "b"]
    assert answer.json()["status"]["feed"] == topic


async def test_sync_asks_the_callback_first(hub: Hub, ask: Ask) -> None:
    answer = await ask(**wanted(hub_verify="sync", hub_verify_token="vt"))
    assert answer.status_code == 204
    [asked] = hub.network.queries
    assert asked["hub.verify_token"] == "vt"
    assert asked["hub.lease_seconds"] == "315359999"
    assert len(await subscribed(hub)) == 1


@pytest.mark.parametrize(
    ("reply", "wording"),
    [
        (404, f"Your callback {CALLBACK} didn't echo the challenge."),
        (
            SILENT,
            "We could not verify your callback Error: the connection was refused",
        ),
    ],
)
async def test_a_callback_that_does_not_confirm_is_422(
    hub: Hub, ask: Ask, reply: Scripted, wording: str
) -> None:
    hub.network.answer_with(reply)
    answer = await ask(**wanted(hub_verify="sync"))
    assert answer.status_code == 422
    assert wording in answer.text
    assert "hub.callback" in answer.text
    assert await subscribed(hub) == []


async def test_a_callback_that_hangs_is_not_waited_for_for_ever(
    hub: Hub, ask: Ask
) -> None:
    hub.services.superfeedr.confirm_seconds = 0.01
    hub.network.gate.clear()
    answer = await ask(**wanted(hub_verify="sync"))
    assert answer.status_code == 422
    assert "Error: ETIMEDOUT" in answer.text


async def put_off(hub: Hub) -> list[Verification]:
    return await hub.storage.verifications.due(hub.clock.now(), per_host=9, limit=9)


async def test_async_is_202_once_the_wish_is_stored_with_all_that_was_asked(
    hub: Hub, ask: Ask
) -> None:
    """So it is kept whatever happens to the hub; `test_account_intents` goes on."""
    answer = await ask(
        **wanted(
            hub_verify="async",
            hub_secret="s3cret",
            hub_verify_token="vt",
            format="json",
            digest="true",
            my="own",
        )
    )
    assert answer.status_code == 202
    assert hub.network.requests == []
    assert await subscribed(hub) == []
    [stored] = await put_off(hub)
    assert (stored.topic, stored.callback) == (TOPIC, CALLBACK)
    assert (stored.secret, stored.algorithm) == ("s3cret", "sha1+sha256")
    assert (stored.verify_token, stored.lease_seconds) == ("vt", 315_359_999)
    assert stored.account_request is not None
    assert (stored.account_request.format, stored.account_request.has_digest) == (
        Format.JSON,
        True,
    )
    assert ("my", "own") in stored.account_request.shown
    assert "s3cret" not in str(stored.account_request)


async def test_async_unsubscribing_waits_for_the_callback_as_well(
    hub: Hub, ask: Ask
) -> None:
    await ask(**wanted())
    answer = await ask(**{**wanted(hub_verify="async"), "hub_mode": "unsubscribe"})
    assert answer.status_code == 202
    assert len(await subscribed(hub)) == 1
    [stored] = await put_off(hub)
    assert stored.mode is VerificationMode.UNSUBSCRIBE


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("hub_topic", "no URL"),
        ("hub_topic", "http://track.superfeedr.com/?query=-a"),
        ("hub_secret", "x" * 200),
    ],
)
async def test_what_is_wrong_is_told_at_once_and_not_put_off(
    hub: Hub, ask: Ask, parameter: str, value: str
) -> None:
    answer = await ask(**wanted(hub_verify="async", **{parameter: value}))
    assert answer.status_code == 422
    assert parameter.replace("_", ".", 1) in answer.text
    assert await put_off(hub) == []


async def test_too_many_that_wait_are_turned_away(hub: Hub, ask: Ask) -> None:
    await asyncio.gather(
        *(
            hub.storage.verifications.add(
                NewVerification(
                    account=ANONYMOUS,
                    mode=VerificationMode.SUBSCRIBE,
                    topic=TOPIC,
                    callback=f"{CALLBACK}{number}",
                    token=str(number),
                ),
                hub.clock.now(),
                most=MOST_PENDING,
                most_of_host=MOST_PENDING,
            )
            for number in range(MOST_PENDING_OF_HOST + MOST_WAITING_OF_ACCOUNTS)
        )
    )
    answer = await ask(**wanted(hub_verify="async"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


async def test_a_digest_is_asked_for_and_given_up_by_subscribing(
    hub: Hub, ask: Ask
) -> None:
    tomorrow = hub.clock.now() + timedelta(days=1)
    for name in ("superfeedr.digest", "digest"):
        await ask(**wanted(**{name: "true"}))
        [due] = await hub.storage.digests.due(tomorrow, 9)
        assert due.topic == TOPIC
        await ask(**wanted())
        assert await hub.storage.digests.due(tomorrow, 9) == []


@pytest.mark.parametrize(
    "callback",
    [
        "https://push.superfeedr.com/dev/null",
        "http://push.superfeedr.com/dev/null",
        "http://hub.example/dev/null",
    ],
)
async def test_the_null_device_is_listed_and_never_told(
    hub: Hub, ask: Ask, callback: str
) -> None:
    answer = await ask(**wanted(hub_callback=callback, hub_verify="sync"))
    assert answer.status_code == 204
    [made] = await subscribed(hub)
    head = (await hub.storage.log.end()).position
    assert made.from_position > head + 10**12
    assert not hub.network.requests


@pytest.mark.parametrize(
    ("parameters", "wording"),
    [
        ({"hub_topic": ""}, "You did not provide a valid hub.topic."),
        ({"hub_topic": "feed.xml"}, "Please provide a valid hub.topic (feed) URL"),
        ({"hub_topic": "http://inside.example/"}, "This url could not be fetched."),
        ({"hub_topic": "https://example.org/" + "x" * 2_048}, "at most 2048"),
        ({"hub_topic": "https://user:pw@example.org/"}, "hub.topic"),
        ({"hub_callback": ""}, "hub.callback"),
        ({"hub_callback": "ftp://you.example/"}, "hub.callback"),
        ({"hub_callback": "http://inside.example/"}, "hub.callback"),
        ({"hub_callback": "https://you.example/" + "x" * 250}, "at most 250"),
        ({"hub_verify": "later"}, "hub.verify"),
        ({"hub_verify_token": "x" * 1_025}, "hub.verify_token"),
        ({"hub_secret": "x" * 200}, "hub.secret"),
        ({"hub_lease_seconds": "abc"}, "hub.lease_seconds"),
        ({"hub_lease_seconds": "1e9"}, "hub.lease_seconds"),
        (
            {"hub_topic": "http://track.superfeedr.com/?query=a+velocity%3A%3E%3E"},
            "one of the flags",
        ),
        ({"hub_signature_algorithm": "md5"}, "hub.signature_algorithm"),
        ({"format": "rss"}, "format"),
        ({"retrieve": "perhaps"}, "retrieve"),
    ],
)
async def test_bad_parameters_are_422_and_named(
    hub: Hub, ask: Ask, parameters: dict[str, str], wording: str
) -> None:
    answer = await ask(**wanted(**parameters))
    assert answer.status_code == 422
    assert wording in answer.text
    assert await subscribed(hub) == []


@pytest.mark.parametrize("seconds", ["0", "60", "-1", "86400.5", " 315359999 "])
async def test_a_lease_is_ignored_as_subscriptions_never_expire(
    hub: Hub, ask: Ask, seconds: str
) -> None:
    answer = await ask(**wanted(hub_lease_seconds=seconds))
    assert answer.status_code == 204
    [made] = await subscribed(hub)
    assert made.lease_end is None


async def test_unsubscribing_is_204_also_again(hub: Hub, ask: Ask) -> None:
    await ask(**wanted())
    for _ in range(2):
        answer = await ask(**{**wanted(), "hub_mode": "unsubscribe"})
        assert answer.status_code == 204
        assert await subscribed(hub) == []
    ended = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert ended is not None
    assert ended.state is SubscriptionState.ENDED


async def test_the_callback_may_be_left_out_where_there_is_one(
    hub: Hub, ask: Ask
) -> None:
    await ask(**wanted())
    answer = await ask(hub_mode="unsubscribe", hub_topic=TOPIC)
    assert answer.status_code == 204
    assert await subscribed(hub) == []


async def test_of_several_the_callback_says_which(hub: Hub, ask: Ask) -> None:
    await ask(**wanted())
    await ask(**wanted(hub_callback="https://you.example/other"))
    answer = await ask(hub_mode="unsubscribe", hub_topic=TOPIC)
    assert answer.status_code == 422
    assert "hub.callback" in answer.text
    assert len(await subscribed(hub)) == 2


@pytest.mark.parametrize("callback", ["", CALLBACK])
async def test_what_was_never_subscribed_may_be_ended_as_what_was(
    hub: Hub, ask: Ask, callback: str
) -> None:
    answer = await ask(hub_mode="unsubscribe", hub_topic=TOPIC, hub_callback=callback)
    assert (answer.status_code, answer.content) == (204, b"")
    assert not hub.network.requests
    assert await hub.storage.feeds.find(TOPIC) is None


async def test_ending_what_never_was_is_put_off_like_anything_else(
    hub: Hub, ask: Ask
) -> None:
    answer = await ask(
        hub_mode="unsubscribe",
        hub_topic=TOPIC,
        hub_callback=CALLBACK,
        hub_verify="async",
    )
    assert answer.status_code == 202
    assert "If there is such a subscription" in answer.text


@pytest.mark.parametrize(("reply", "status"), [(agree, 204), (404, 422)])
async def test_ending_what_never_was_is_as_its_callback_says_if_that_is_asked_for(
    hub: Hub, ask: Ask, reply: Script, status: int
) -> None:
    hub.network.answer_with(reply)
    answer = await ask(
        hub_mode="unsubscribe",
        hub_topic=TOPIC,
        hub_callback=CALLBACK,
        hub_verify="sync",
    )
    assert answer.status_code == status
    assert [each["hub.mode"] for each in hub.network.queries] == ["unsubscribe"]


async def test_who_is_to_be_asked_must_be_named(hub: Hub, ask: Ask) -> None:
    await ask(**wanted())
    answer = await ask(hub_mode="unsubscribe", hub_topic=TOPIC, hub_verify="sync")
    assert answer.status_code == 422
    assert "hub.callback" in answer.text
    sure = await ask(**{**wanted(hub_verify="sync"), "hub_mode": "unsubscribe"})
    assert sure.status_code == 204
    assert hub.network.queries[0]["hub.mode"] == "unsubscribe"


async def test_accounts_do_not_touch_each_others_subscriptions(
    hub: Hub, ask: Ask, anybody: httpx2.AsyncClient
) -> None:
    await ask(**wanted())
    other = await make_token(hub, account="other")
    form = {"hub.mode": "unsubscribe", "hub.topic": TOPIC, "hub.callback": CALLBACK}
    answer = await anybody.post("/", data=form, auth=("other", other))
    assert answer.status_code == 204
    assert len(await subscribed(hub)) == 1


async def test_a_feed_that_cannot_be_fetched_is_subscribed_to_all_the_same(
    hub: Hub, ask: Ask
) -> None:
    hub.poller.outcome = lambda polling: replace(
        polling, code=503, error="answered 503"
    )
    hub.poller.format = ""
    assert (await ask(**wanted())).status_code == 204
    assert (await subscribed(hub))[0].format is Format.BY_TOPIC
