"""Runs of the playground: what is kept of them, and for how long."""

from __future__ import annotations

from datetime import timedelta

from storage.records import StoredRun
from tests.support.storage_scene import START, Scene


def a_run(id: str, minutes: int, body: bytes = b"its messages") -> StoredRun:
    return StoredRun(id=id, used_at=START + timedelta(minutes=minutes), body=body)


async def test_runs_are_kept_until_they_are_removed_or_too_old(scene: Scene) -> None:
    store = scene.storage.playground
    await store.save([a_run(id, minutes) for minutes, id in enumerate("abcd")])
    await store.save([a_run("b", 9, body=b"other messages")])
    await store.remove("c")
    await store.remove("never kept")
    kept = [a_run("b", 9, body=b"other messages"), a_run("d", 3)]
    assert await store.since(START + timedelta(minutes=3)) == kept
    assert await store.since(START) == kept
