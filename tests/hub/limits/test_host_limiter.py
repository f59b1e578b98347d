"""One limiter for all that asks hosts: no two requests closer than the pace."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.limits.host_limiter import (
    INTERVAL,
    PATIENCE,
    HostLimiter,
    HostQuota,
    RequestKind,
)
from tests.support.played_time import PlayedTime

FETCH, TOPIC, LOOK = RequestKind.FETCH, RequestKind.TOPIC, RequestKind.LOOK
POLL, CRAWL = RequestKind.POLL, RequestKind.CRAWL
QUESTION, DENIAL = RequestKind.QUESTION, RequestKind.DENIAL


class Scene:
    """A limiter, and the requests that started: what, and when."""

    def __init__(self, most_hosts: int = 100) -> None:
        self.time = PlayedTime()
        self.limiter = HostLimiter(
            self.time.clock,
            lambda host: host.endswith(".exempt"),
            sleep=self.time.sleep,
            most_hosts=most_hosts,
        )
        self.started: list[tuple[str, float]] = []

    def ask(
        self, host: str = "a.example", kind: RequestKind = POLL, name: str = ""
    ) -> asyncio.Task[None]:
        return asyncio.create_task(self._ask(host, kind, name or str(kind)))

    async def _ask(self, host: str, kind: RequestKind, name: str) -> None:
        await self.limiter.wait(host, kind)
        self.started.append((name, self.time.now))

    async def pass_by(self, seconds: float) -> None:
        await self.time.pass_by(seconds)

    @property
    def starts(self) -> list[float]:
        return [at for _, at in self.started]

    @property
    def order(self) -> list[str]:
        return [name for name, _ in self.started]


async def test_requests_to_one_host_start_a_second_apart_whatever_asks() -> None:
    scene = Scene()
    for kind in RequestKind:
        scene.ask(kind=kind)
    await scene.pass_by(10)
    assert scene.starts == pytest.approx(list(range(len(RequestKind))))


async def test_hosts_do_not_wait_for_each_other() -> None:
    scene = Scene()
    for host in ("a.example", "b.example", "c.example"):
        scene.ask(host)
    await scene.pass_by(0)
    assert scene.starts == [0, 0, 0]


async def test_a_host_that_rested_is_asked_at_once_again() -> None:
    scene = Scene()
    scene.ask()
    await scene.pass_by(5)
    scene.ask()
    await scene.pass_by(0)
    assert scene.starts == [0, 5]


async def test_hosts_that_are_exempt_and_no_host_at_all_wait_for_nothing() -> None:
    scene = Scene()
    for host in ("a.exempt", "a.exempt", "", ""):
        scene.ask(host)
    await scene.pass_by(0)
    assert scene.starts == [0, 0, 0, 0]
    assert scene.limiter.is_exempt("a.exempt")
    assert not scene.limiter.is_exempt("a.example")


async def test_what_somebody_waits_for_passes_a_crawl_polls_and_looks() -> None:
    scene = Scene()
    scene.ask()
    for kind in (CRAWL, CRAWL, POLL, LOOK, FETCH, TOPIC):
        scene.ask(kind=kind)
    await scene.pass_by(10)
    assert scene.order == [
        *("poll", "fetch", "topic", "look", "poll", "crawl", "crawl")
    ]


async def test_nobody_is_passed_by_who_comes_after_its_patience_is_over() -> None:
    scene = Scene()
    scene.ask()
    scene.ask(kind=CRAWL, name="the crawl")
    for _ in range(200):
        scene.ask(kind=FETCH)
        await scene.pass_by(0.7)  # more than there is time for
    [at] = [at for name, at in scene.started if name == "the crawl"]
    assert PATIENCE[CRAWL] < at < 2 * PATIENCE[CRAWL]


async def test_who_gives_up_waiting_takes_nobodys_turn() -> None:
    scene = Scene()
    scene.ask()
    gone = scene.ask(name="gone")
    scene.ask(name="next")
    await scene.pass_by(0.5)
    gone.cancel()
    await scene.pass_by(5)
    assert scene.started == [("poll", 0), ("next", 1)]
    scene.ask(name="later")
    await scene.pass_by(0)
    assert scene.started[-1] == ("later", 5.5)


async def test_when_all_have_given_up_the_next_waits_for_its_turn_as_ever() -> None:
    scene = Scene()
    scene.ask()
    gone = scene.ask()
    await scene.pass_by(0.2)
    gone.cancel()
    await scene.pass_by(0.2)
    scene.ask(name="next")
    await scene.pass_by(5)
    assert scene.started == [("poll", 0), ("next", 1)]


async def test_after_a_redirect_that_was_followed_at_once_others_wait() -> None:
    scene = Scene()
    scene.limiter.count("a.example")
    scene.limiter.count("a.exempt")
    scene.ask()
    scene.ask("a.exempt")
    await scene.pass_by(5)
    assert scene.starts == [0, 1]


async def test_and_so_do_those_that_were_waiting_already() -> None:
    scene = Scene()
    scene.ask()
    scene.ask()
    await scene.pass_by(0.5)
    scene.limiter.count("a.example")
    await scene.pass_by(5)
    assert scene.starts == [0, 1.5]


async def test_redirects_that_never_cease_put_a_turn_off_by_a_few_seconds_only() -> (
    None
):
    scene = Scene()
    scene.limiter.count("a.example")
    waiting = [scene.ask() for _ in range(3)]
    for _ in range(40):
        await scene.pass_by(0.5)
        scene.limiter.count("a.example")
    assert all(each.done() for each in waiting)
    assert all(
        later - earlier <= 5 for earlier, later in pairwise([0.0, *scene.starts])
    )


async def test_names_of_one_zone_are_asked_ten_times_a_second_for_strangers() -> None:
    scene = Scene()
    for number in range(30):
        kind = TOPIC if number % 2 else QUESTION
        scene.ask(f"{number}.names.example", kind)
    scene.ask("of.others.example", TOPIC)
    await scene.pass_by(5)
    of_zone = [at for name, at in scene.started[2:]]
    assert of_zone == pytest.approx([number / 10 for number in range(1, 30)])


async def test_whoever_has_agreed_is_asked_by_host_alone() -> None:
    scene = Scene()
    for number in range(30):
        scene.ask(f"{number}.names.example", DENIAL)
    await scene.pass_by(0)
    assert scene.starts == [0] * 30


async def test_polls_wait_while_their_host_wants_no_requests() -> None:
    scene = Scene()
    scene.limiter.hold("a.example", 60)
    scene.ask(kind=POLL)
    scene.ask("b.example", name="b")
    await scene.pass_by(100)
    assert scene.started == [("b", 0), ("poll", 60)]


async def test_a_poll_that_waits_for_its_turn_heeds_a_hold_that_comes_then() -> None:
    scene = Scene()
    for kind in (POLL, POLL, POLL, LOOK):
        scene.ask(kind=kind)
    await scene.pass_by(0.5)
    scene.limiter.hold("a.example", 60)
    await scene.pass_by(100)
    assert scene.started == [("poll", 0), ("look", 1), ("poll", 60.5), ("poll", 61.5)]


async def test_who_has_no_time_for_a_long_hold_is_told_before_its_turn_or_then() -> (
    None
):
    scene = Scene()
    wait = partial(scene.limiter.wait, "a.example", POLL, longest_hold=30)
    assert await wait()
    waiting = asyncio.create_task(wait())
    await scene.pass_by(0.5)
    scene.limiter.hold("a.example", 40)
    await scene.pass_by(1)
    assert waiting.done()
    assert [waiting.result(), await wait()] == [False, False]

    await scene.pass_by(20)
    waiting = asyncio.create_task(wait())
    await scene.pass_by(30)
    assert await waiting


async def test_what_is_looked_at_for_somebody_is_asked_once_all_the_same() -> None:
    scene = Scene()
    scene.limiter.hold("a.example", 60)
    scene.ask(kind=LOOK)
    scene.ask(kind=TOPIC)
    await scene.pass_by(2)
    assert scene.starts == [0, 1]


async def test_a_later_hold_never_shortens_an_earlier_one() -> None:
    scene = Scene()
    assert scene.limiter.held("a.example") == 0
    scene.limiter.hold("a.example", 60)
    scene.limiter.hold("a.example", 10)
    await scene.pass_by(20)
    assert scene.limiter.held("a.example") == 40


async def test_it_is_known_what_waits_for_a_host() -> None:
    scene = Scene()
    for _ in range(2):
        scene.ask(kind=QUESTION)
    await scene.pass_by(0.5)
    assert scene.limiter.is_waited_for("a.example", QUESTION)
    assert not scene.limiter.is_waited_for("a.example", DENIAL)
    assert not scene.limiter.is_waited_for("b.example", QUESTION)
    await scene.pass_by(1)
    assert not scene.limiter.is_waited_for("a.example", QUESTION)


async def test_idle_hosts_are_forgotten_and_held_ones_are_not() -> None:
    scene = Scene()
    scene.limiter.hold("held.example", 100)
    for host in ("a.example", "b.example", "c.example"):
        scene.ask(host)
    await scene.pass_by(2)
    scene.ask("d.example")
    await scene.pass_by(0)
    assert scene.limiter.held("held.example") == 98


async def test_of_more_hosts_than_are_remembered_the_oldest_is_forgotten() -> None:
    scene = Scene(most_hosts=3)
    hosts = [f"h{number}.example" for number in range(5)]
    for host in hosts:
        scene.limiter.hold(host, 60)
    assert [scene.limiter.held(host) for host in hosts] == [0, 0, 60, 60, 60]


@given(
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from(RequestKind)), max_size=40),
)
def test_no_two_requests_to_a_host_are_ever_closer_and_a_kind_keeps_its_order(
    arrivals: list[tuple[float, RequestKind]],
) -> None:
    scene = asyncio.run(_arriving(arrivals))
    assert len(scene.started) == len(arrivals)
    assert all(
        later - earlier > INTERVAL - 1e-6 for earlier, later in pairwise(scene.starts)
    )
    for kind in RequestKind:
        numbers = [
            int(name.partition(" ")[2])
            for name in scene.order
            if name.startswith(f"{kind} ")
        ]
        assert numbers == sorted(numbers)


async def _arriving(arrivals: list[tuple[float, RequestKind]]) -> Scene:
    scene = Scene()
    for number, (gap, kind) in enumerate(arrivals):
        await scene.pass_by(gap)
        scene.ask(kind=kind, name=f"{kind} {number}")
    await scene.pass_by(len(arrivals) * INTERVAL)
    return scene


def test_so_many_of_one_host_may_be_under_way_and_no_more() -> None:
    quota = HostQuota(of_host=2, of_zone=9)
    with quota.enter("a.example"):
        assert not quota.is_full("a.example")
        with quota.enter("a.example"):
            assert quota.is_full("a.example")
            assert not quota.is_full("b.example")
    assert not quota.is_full("a.example")


def test_however_many_names_a_zone_has_so_many_may_be_under_way() -> None:
    quota = HostQuota(of_host=9, of_zone=3)
    with ExitStack() as stack:
        for number in range(3):
            stack.enter_context(quota.enter(f"{number}.names.example"))
        assert quota.is_full("another.names.example")
        assert not quota.is_full("names.of.others.example")
    assert not quota.is_full("another.names.example")
