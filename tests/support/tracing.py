"""Coverage of the tests alone: a plugin for pytest (``-p tests.support.tracing``).

Tracing makes Python half as fast. So what does one thing a hundred thousand times is
not traced (``bulk``). Of a test with many cases only the first is, except where every
branch is to be covered. ``COVERAGE_FILE`` says where the data go.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Generator
from importlib import import_module

import pytest
from coverage import Coverage

MEASURED = ("hub", "protocols", "storage")
WHOLE = ("tests/protocols/", "tests/hub/core/")
"""Folders of tests of which every case is traced."""

_coverage = Coverage()
_traced: set[str] = set()
"""Tests of which a case was traced."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Import all that is measured before anything else does: imports count too."""
    _coverage.start()
    for package in MEASURED:
        path = import_module(package).__path__
        for each in pkgutil.walk_packages(path, f"{package}."):
            if not each.name.endswith(".__main__"):
                import_module(each.name)
    _coverage.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    _coverage.start()
    try:
        return (yield)
    finally:
        _coverage.stop()
        _coverage.save()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if is_traced(item):
        return (yield)
    _coverage.stop()
    try:
        return (yield)
    finally:
        _coverage.start()


def is_traced(item: pytest.Item) -> bool:
    name, _, _ = item.nodeid.partition("[")
    if item.get_closest_marker("bulk") is not None:
        return False
    is_first = name not in _traced
    _traced.add(name)
    return is_first or name.startswith(WHOLE)
