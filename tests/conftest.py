"""What every test needs: property tests that do not fail for a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fanfare", deadline=None)
settings.load_profile("fanfare")
