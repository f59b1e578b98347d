"""Nodes that join a database, on every engine; one after the other under one name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from storage.errors import TermEnded
from storage.records import MemberNode, NewNode, NodeTerm, ShardKind
from tests.support.storage_scene import Scene, all_of, at

HUB = NewNode(name="hub", url="https://hub.example")


async def test_a_node_that_is_alone_owns_all_there_is(scene: Scene) -> None:
    membership = scene.storage.membership

    term = await membership.join(replace(HUB, is_alone=True))

    assert [term.shards(kind) for kind in ShardKind] == [None, None, None]
    (node,) = await membership.nodes()
    assert node == MemberNode(
        name="hub",
        url="https://hub.example",
        incarnation=term.incarnation,
        seconds=node.seconds,
    )
    assert node.seconds is None or node.seconds > 0


async def test_a_term_goes_on_until_another_of_its_name_begins(scene: Scene) -> None:
    membership = scene.storage.membership
    term = await membership.join(HUB)
    assert (await membership.renew(term)).incarnation == term.incarnation

    successor = await membership.join(HUB)

    assert successor.incarnation > term.incarnation
    with pytest.raises(TermEnded):
        await membership.renew(term)
    await membership.leave(term)  # which is over, and ends nobody else's
    assert (await membership.renew(successor)).incarnation == successor.incarnation


async def test_who_leaves_is_no_member_and_holds_nothing(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)
    membership = scene.storage.membership
    term = await membership.join(HUB)
    (chunk,) = await scene.claim()

    await membership.leave(term)

    assert await membership.nodes() == []
    with pytest.raises(TermEnded):
        await membership.renew(term)
    await membership.join(HUB)
    (again,) = await scene.claim(at(1), lease_id=2)
    assert again.id == chunk.id
    await scene.flush(outcomes=all_of(chunk))
    assert (await scene.storage.backlog()).chunks == 1


def test_only_the_leader_owns_what_one_node_does_for_all() -> None:
    follower = NodeTerm(name="b", incarnation=1, seconds=15.0, is_leader=False)
    assert follower.shards(ShardKind.LEADER) == frozenset()
