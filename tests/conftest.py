"""What every test needs: property tests that judge a tree, not a machine or its luck.

Their examples are the same in every run of the same tree, so that what was green stays
green. Others each time, to look for more:

    ./scripts/test --hypothesis-profile=explore tests/conformance/test_model.py
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fanfare", settings.get_profile("explore"), derandomize=True)
settings.load_profile("fanfare")
