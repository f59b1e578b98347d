"""What every test needs: an end, and property tests that judge a tree, not its luck.

A test that waits for what never comes fails after `DEADLINE` and shows where.

The examples of a property are the same in every run of the same tree, so that what was
green stays green, and few. Others each time, and ten times as many, to look for more:

    ./scripts/test --hypothesis-profile=explore tests/conformance/test_model.py
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from hub.runtime.garbage_collection import freeze_startup
from tests.support.chosen_engine import CHOSEN, Engine, released
from tests.support.waiting import deadline

DEADLINE: Final = 300.0
"""Seconds that a test, its set-up or its end may take: several times the longest."""

settings.register_profile(
    "explore",
    deadline=None,
    max_examples=500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fanfare", settings.get_profile("explore"), derandomize=True, max_examples=50
)
settings.load_profile("fanfare")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "bulk: one thing very often; it is not traced")
    config.addinivalue_line(
        "markers", "once(why): not again on another engine than SQLite"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN is Engine.SQLITE:
        return
    for item in items:
        if (once := item.get_closest_marker("once")) is not None:
            item.add_marker(pytest.mark.skip(reason=once.args[0]))


@pytest.fixture(autouse=CHOSEN is not Engine.SQLITE)
def _databases() -> Iterator[None]:
    """What a test opened, on a server, is given back when it has closed it."""
    with released():
        yield


def pytest_collection_finish() -> None:
    """What is imported and collected stays to the end: to walk over it again and again
    would cost a tenth of all the time."""
    freeze_startup()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    return (yield from in_time())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    return (yield from in_time())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    return (yield from in_time())


def in_time() -> Generator[None]:
    examples = settings().max_examples
    with deadline(DEADLINE * max(1, examples // 50)):
        return (yield)
