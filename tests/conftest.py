"""What every test needs: property tests that judge a tree, not a machine or its luck.

Their examples are the same in every run of the same tree, so that what was green stays
green, and few. Others each time, and ten times as many, to look for more:

    ./scripts/test --hypothesis-profile=explore tests/conformance/test_model.py
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

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
