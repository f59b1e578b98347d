from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from msgspec.structs import replace

from storage.contract import Storage, VerificationStore
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Format,
    NewVerification,
    VerificationMode,
    VerificationState,
    VerificationTry,
    WorkKind,
)
from tests.support.work_claims import ALL_IS_DUE, HOLD

NOW = datetime(2026, 6, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LAST = VerificationTry(at=NOW, status=404, excerpt="no such", reason="answered 404")


class Held:
    """The store; what comes of a request is stored if it can be claimed then, which is
    returned."""

    def __init__(self, storage: Storage) -> None:
        self._claims = storage.claims
        self._store = storage.verifications

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def retry(self, id: int, last: VerificationTry, due: datetime) -> bool:
        await self._claim(id)
        return await self._store.retry(id, last, due, lease_id=HOLD)

    async def finish(
        self,
        id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> bool:
        await self._claim(id)
        return await self._store.finish(
            id, state, last, kept_until=kept_until, lease_id=HOLD
        )

    async def _claim(self, id: int) -> None:
        await self._claims.claim(
            WorkKind.VERIFICATIONS, [id], lease_id=HOLD, seconds=9, now=ALL_IS_DUE
        )


@pytest.fixture
def store(storage: Storage) -> VerificationStore:
    return cast("VerificationStore", Held(storage))


def a_request(number: int = 1, **changes: object) -> NewVerification:
    request = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic="https://feeds.example/1",
        callback=f"https://reader.example/{number}",
        token=f"token {number}",
        lease_seconds=300,
        secret="the secret",
        algorithm="sha512",
        format=Format.ATOM,
        verify_token="theirs",
    )
    return replace(request, **changes)  # type: ignore[arg-type]


async def add(
    store: VerificationStore,
    new: NewVerification,
    *,
    at: datetime = NOW,
    most: int = 100,
    most_of_host: int = 100,
) -> bool:
    return await store.add(new, at, most=most, most_of_host=most_of_host)


async def due(
    store: VerificationStore, at: datetime = NOW, *, per_host: int = 9, limit: int = 9
) -> list[str]:
    found = await store.due(at, per_host=per_host, limit=limit)
    return [each.callback.rpartition("/")[2] for each in found]


async def test_a_request_is_due_at_once_with_all_that_was_asked(
    store: VerificationStore,
) -> None:
    assert await add(store, a_request())
    (found,) = await store.due(NOW, per_host=1, limit=1)
    assert (found.account, found.mode) == (ANONYMOUS, VerificationMode.SUBSCRIBE)
    assert found.topic == "https://feeds.example/1"
    assert found.callback == "https://reader.example/1"
    assert (found.secret, found.algorithm) == ("the secret", "sha512")
    assert (found.format, found.lease_seconds) == (Format.ATOM, 300)
    assert found.verify_token == "theirs"
    assert (found.state, found.attempts) == (VerificationState.PENDING, 0)
    assert (found.created_at, found.due, found.last) == (NOW, NOW, None)
    assert await store.next_due() == NOW


async def test_a_request_is_found_by_its_token_only(store: VerificationStore) -> None:
    await add(store, a_request())
    found = await store.find("token 1")
    assert found is not None
    assert await store.find("token 2") is None


async def test_the_same_request_again_replaces_the_pending_one(
    store: VerificationStore,
) -> None:
    await add(store, a_request())
    again = a_request(
        token="another", topic="https://FEEDS.example/%31", secret="a new secret"
    )
    assert await add(store, again, most=1, most_of_host=1)
    (found,) = await store.due(NOW, per_host=9, limit=9)
    assert found.secret == "a new secret"
    assert found.topic == "https://FEEDS.example/%31"
    old = await store.find("token 1")
    assert old is not None
    assert (old.state, old.secret) == (VerificationState.REPLACED, "")


async def test_other_accounts_and_modes_are_other_requests(
    store: VerificationStore,
) -> None:
    await add(store, a_request())
    await add(store, a_request(token="2", account=OPERATOR))
    await add(store, a_request(token="3", mode=VerificationMode.UNSUBSCRIBE))
    for token in ("token 1", "2", "3"):
        found = await store.find(token)
        assert found is not None
        assert found.state is VerificationState.PENDING


async def test_an_unsubscription_waits_for_the_subscription_before_it(
    store: VerificationStore,
) -> None:
    await add(store, a_request())
    await add(store, a_request(token="2", mode=VerificationMode.UNSUBSCRIBE))
    (first,) = await store.due(NOW, per_host=9, limit=9)
    assert first.mode is VerificationMode.SUBSCRIBE
    assert await store.retry(first.id, LAST, NOW + MINUTE)
    assert await due(store) == []
    assert await store.finish(
        first.id, VerificationState.VERIFIED, LAST, kept_until=NOW
    )
    (second,) = await store.due(NOW, per_host=9, limit=9)
    assert second.mode is VerificationMode.UNSUBSCRIBE


async def test_only_so_many_may_be_pending(store: VerificationStore) -> None:
    assert await add(store, a_request(1), most=2)
    assert await add(store, a_request(2), most=2)
    assert not await add(store, a_request(3), most=2)
    assert await store.find("token 3") is None


async def test_only_so_many_may_be_pending_for_one_host(
    store: VerificationStore,
) -> None:
    assert await add(store, a_request(1), most_of_host=1)
    assert not await add(store, a_request(2), most_of_host=1)
    other = a_request(3, callback="https://other.example/3")
    assert await add(store, other, most_of_host=1)


async def test_only_so_many_may_be_pending_of_one_who_asks(
    store: VerificationStore,
) -> None:
    async def ask(number: int, asker: str, token: str = "") -> bool:
        new = a_request(number, asker=asker, token=token or str(number))
        return await store.add(new, NOW, most=99, most_of_host=99, most_of_asker=2)

    taken = [await ask(number, "192.0.2.1") for number in range(4)]
    assert taken == [True, True, False, False]
    assert await ask(5, "192.0.2.2")
    assert [await ask(number, "") for number in range(6, 10)] == [True] * 4
    assert await ask(0, "192.0.2.1", token="again")  # it takes its own place

    done, *_ = await store.due(NOW, per_host=9, limit=1)
    assert await store.finish(done.id, VerificationState.FAILED, LAST, kept_until=NOW)
    assert [await ask(number, "192.0.2.1") for number in (10, 11)] == [True, False]


async def test_many_of_one_who_asks_that_come_at_once_are_counted(
    store: VerificationStore,
) -> None:
    taken = await asyncio.gather(
        *(
            store.add(
                a_request(number, asker=f"192.0.2.{number % 2}"),
                NOW,
                most=99,
                most_of_host=99,
                most_of_asker=2,
            )
            for number in range(6)
        )
    )
    assert taken == [True] * 4 + [False] * 2


async def test_no_host_hides_the_others(store: VerificationStore) -> None:
    for number in range(5):
        await add(store, a_request(number))
    await add(store, a_request(9, callback="https://other.example/9"), at=NOW + MINUTE)
    assert await due(store, NOW + MINUTE, per_host=2) == ["0", "1", "9"]
    assert await due(store, NOW + MINUTE, per_host=2, limit=1) == ["0"]


async def test_hosts_that_had_their_turn_do_not_hide_the_others(
    store: VerificationStore,
) -> None:
    for number in range(5):
        await add(store, a_request(number))
    await add(store, a_request(9, callback="https://other.example/9"), at=NOW + MINUTE)
    found = await store.due(
        NOW + MINUTE, per_host=9, limit=1, without_hosts=["reader.example", "x"]
    )
    assert [each.callback for each in found] == ["https://other.example/9"]


async def test_what_is_in_hand_is_not_given_out_again(
    store: VerificationStore,
) -> None:
    for number in range(3):
        await add(store, a_request(number))
    first, *_ = await store.due(NOW, per_host=9, limit=9)
    others = await store.due(NOW, per_host=1, limit=9, without={first.id})
    assert [each.callback for each in others] == ["https://reader.example/1"]


async def test_many_that_come_at_once_are_taken_one_after_the_other(
    store: VerificationStore,
) -> None:
    requests = [
        a_request(1),
        a_request(1, token="again", secret="a new secret"),
        a_request(2, callback="https://other.example/2"),
        a_request(3),
        a_request(1, token="once more"),
    ]
    taken = await asyncio.gather(
        *(add(store, each, most=2, most_of_host=9) for each in requests)
    )
    assert taken == [True, True, True, False, True]
    assert await due(store) == ["2", "1"]
    replaced = await store.find("again")
    assert replaced is not None
    assert replaced.state is VerificationState.REPLACED


async def test_a_try_that_led_nowhere_is_made_again_later(
    store: VerificationStore,
) -> None:
    await add(store, a_request())
    (found,) = await store.due(NOW, per_host=1, limit=1)
    assert await store.retry(found.id, LAST, NOW + MINUTE)
    assert await due(store) == []
    assert await store.next_due() == NOW + MINUTE
    (again,) = await store.due(NOW + MINUTE, per_host=1, limit=1)
    assert (again.attempts, again.last, again.secret) == (1, LAST, "the secret")


async def test_what_waits_for_another_try_does_not_hold_up_the_opposite(
    store: VerificationStore,
) -> None:
    """A subscriber that stopped without an answer, and is there again."""
    await add(store, a_request(mode=VerificationMode.UNSUBSCRIBE))
    (found,) = await store.due(NOW, per_host=1, limit=1)
    assert await store.retry(found.id, LAST, NOW + MINUTE)
    assert await add(store, a_request(token="new"), most=1)
    (now,) = await store.due(NOW, per_host=9, limit=9)
    assert (now.mode, now.attempts) == (VerificationMode.SUBSCRIBE, 0)
    former = await store.find("token 1")
    assert former is not None
    assert (former.state, former.due) == (VerificationState.REPLACED, None)
    assert await store.retry(now.id, LAST, NOW)
    assert len(await store.due(NOW + MINUTE, per_host=9, limit=9)) == 1


async def test_a_finished_one_keeps_its_outcome_and_no_secret(
    store: VerificationStore,
) -> None:
    await add(store, a_request())
    (found,) = await store.due(NOW, per_host=1, limit=1)
    assert await store.finish(found.id, VerificationState.FAILED, LAST, kept_until=NOW)
    assert not await store.retry(found.id, LAST, NOW)
    done = await store.find("token 1")
    assert done is not None
    assert (done.state, done.secret) == (VerificationState.FAILED, "")
    assert (done.attempts, done.last, done.due) == (1, LAST, None)
    assert await store.next_due() is None


async def test_a_finished_one_goes_when_it_need_not_be_kept(
    store: VerificationStore,
) -> None:
    for number in (1, 2, 3):
        await add(store, a_request(number))
    for each in (await store.due(NOW, per_host=9, limit=9))[:2]:
        assert await store.finish(
            each.id, VerificationState.FAILED, LAST, kept_until=NOW + DAY
        )
    assert await store.trim(NOW + DAY, 9) == 0
    assert await store.trim(NOW + 2 * DAY, 1) == 1
    assert await store.trim(NOW + 2 * DAY, 9) == 1
    assert await store.find("token 3") is not None
