"""Coverage of the tests alone: a plugin for pytest (``-p tests.support.tracing``).

Tracing makes Python half as fast, and much of the time of the tests goes into reading
them, which is not traced, nor is what does one thing a hundred thousand times
(``bulk``). Where the data go is told by ``COVERAGE_FILE``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Generator
from importlib import import_module

import pytest
from coverage import Coverage

MEASURED = ("hub", "protocols", "storage")

_coverage = Coverage()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Import all that is measured, before any other does: it counts as well."""
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
    if item.get_closest_marker("bulk") is None:
        return (yield)
    _coverage.stop()
    try:
        return (yield)
    finally:
        _coverage.start()
