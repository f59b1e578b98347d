"""Coverage of the tests alone: a plugin for pytest (``-p tests.support.tracing``).

Tracing makes Python half as fast. So what does one thing a hundred thousand times is
not traced (``bulk``). Of a test with many cases only the first is, except where every
branch is to be covered. A thread that lasts is traced until the first test that is not,
so none of ``tests/hub/core`` is ``bulk``: sites are read in such a thread.
``COVERAGE_FILE`` says where the data go.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from coverage import Coverage

WHOLE = ("tests/protocols/", "tests/hub/core/")
"""Folders of tests of which every case is traced."""

coverage = Coverage()
_traced: set[str] = set()
"""Tests of which a case was traced."""


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    coverage.start()
    try:
        return (yield)
    finally:
        coverage.stop()
        coverage.save()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if is_traced(item):
        return (yield)
    coverage.stop()
    try:
        return (yield)
    finally:
        coverage.start()


def is_traced(item: pytest.Item) -> bool:
    name, _, _ = item.nodeid.partition("[")
    if item.get_closest_marker("bulk") is not None:
        return False
    is_first = name not in _traced
    _traced.add(name)
    return is_first or name.startswith(WHOLE)
