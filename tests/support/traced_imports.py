"""Coverage of what is run when it is imported: a second plugin for pytest, beside
`tests.support.tracing`. One of several runs that are taken together needs it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from tests.support.tracing import coverage

MEASURED = ("hub", "protocols", "storage")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Import all that is measured before anything else does: imports count too."""
    coverage.start()
    for package in MEASURED:
        path = import_module(package).__path__
        for each in pkgutil.walk_packages(path, f"{package}."):
            if not each.name.endswith(".__main__"):
                import_module(each.name)
    coverage.stop()
