"""The audit trail as every engine keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Account,
    AuditFilter,
    AuditId,
    AuditOutcome,
    AuditRecord,
    AuditSource,
    AuditTarget,
    TokenId,
)
from tests.support.storage_scene import START, Scene, at

HOUR = timedelta(hours=1)
OWN = Account(id=OPERATOR, name="operator")
OTHER = Account(id=ANONYMOUS, name="anonymous")


def new(seconds: float, **changes: Any) -> AuditRecord:
    record = AuditRecord(
        at=at(seconds),
        account=OWN,
        source=AuditSource.API,
        operation="pause_feed",
        status=200,
    )
    return replace(record, **changes)


WHOLE = new(
    7,
    account=OTHER,
    token=TokenId(3),
    is_admin=True,
    session="1a2b3c4d",
    address="2001:db8::/64",
    source=AuditSource.ACCOUNT_PAGES,
    operation="edit_feed",
    target=AuditTarget.FEED,
    target_id=12,
    target_name="https://a.example/feed",
    status=409,
    detail="category → news",
)


async def found(scene: Scene, **wanted: Any) -> list[int]:
    page = await scene.storage.audit.page(AuditFilter(**wanted), before=None, limit=99)
    return [each.id for each in page.records]


async def test_a_record_is_read_back_as_it_was_written(scene: Scene) -> None:
    await scene.storage.audit.add([WHOLE, new(3)])

    page = await scene.storage.audit.page(AuditFilter(), before=None, limit=9)

    assert page.records == (
        replace(WHOLE, id=AuditId(1)),
        replace(new(3), id=AuditId(2)),
    )
    assert page.next is None


async def test_records_are_paged_from_the_latest_on(scene: Scene) -> None:
    audit = scene.storage.audit
    await audit.add([new(1), new(2), new(2), new(3)])

    first = await audit.page(AuditFilter(), before=None, limit=3)
    rest = await audit.page(AuditFilter(), before=first.next, limit=3)

    assert [each.id for each in first.records] == [4, 3, 2]
    assert first.next == (at(2), 2)
    assert [each.id for each in rest.records] == [1]
    assert rest.next is None


FILTERS: Final[Sequence[tuple[dict[str, Any], list[int]]]] = (
    ({}, [1, 4, 3, 2]),
    ({"account": ANONYMOUS}, [1]),
    ({"token": 3}, [1]),
    ({"session": "1a2b3c4d"}, [1]),
    ({"source": AuditSource.API}, [4, 3, 2]),
    ({"operation": "pause_feed"}, [4, 3, 2]),
    ({"without": "pause_feed"}, [1]),
    ({"without": "edit_feed", "target": AuditTarget.FEED}, [3]),
    ({"target": AuditTarget.FEED}, [1, 3]),
    ({"target": AuditTarget.FEED, "target_id": 12}, [1, 3]),
    ({"target": AuditTarget.PLAN, "target_id": 12}, [4]),
    ({"outcome": AuditOutcome.REFUSED}, [1]),
    ({"outcome": AuditOutcome.FAILED}, [2]),
    ({"outcome": AuditOutcome.DONE, "account": OPERATOR}, [4, 3]),
    ({"since": at(2), "until": at(3)}, [3]),
    ({"operation": "edit_feed", "account": OPERATOR}, []),
    ({"target_id": 12, "target": AuditTarget.FEED, "until": at(7)}, [3]),
)


async def test_a_filter_finds_what_it_names(scene: Scene) -> None:
    await scene.storage.audit.add(
        [
            WHOLE,
            new(1, status=0),
            new(2, target=AuditTarget.FEED, target_id=12),
            new(3, target=AuditTarget.PLAN, target_id=12),
        ]
    )

    for wanted, ids in FILTERS:
        assert await found(scene, **wanted) == ids, wanted


async def test_what_is_too_old_is_forgotten(scene: Scene) -> None:
    audit = scene.storage.audit
    await audit.add([new(1), new(2), new(3)])

    assert await audit.trim(before=at(3), kept=99, limit=1) == 1
    assert await audit.trim(before=at(3), kept=99, limit=9) == 1
    assert await found(scene) == [3]


async def test_the_last_are_kept_of_administrators_and_of_all_others(
    scene: Scene,
) -> None:
    audit = scene.storage.audit
    await audit.add([new(each, is_admin=True) for each in range(3)])
    await audit.add([new(each + 3) for each in range(9)])

    assert await audit.trim(before=START, kept=2, limit=99) == 8
    assert await found(scene) == [12, 11, 3, 2]
    assert await audit.trim(before=START, kept=2, limit=99) == 0
    assert await audit.trim(before=START + HOUR, kept=2, limit=99) == 4
