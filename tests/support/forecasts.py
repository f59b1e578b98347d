"""What a forecast says, moment by moment: slow, and without a closed form."""

from __future__ import annotations

from math import exp

from hub.core.forecast import Forecast
from hub.core.habits import step_of
from hub.core.posting import BURST_MEMORY

_STEP = 10.0


def rate_at(forecast: Forecast, moment: float) -> float:
    """Entries a second expected at a time not before the start."""
    profile = forecast.profile
    steady = forecast.steady * profile.at(moment) * profile.steps()[step_of(moment)]
    return steady + forecast.excited * exp((forecast.start - moment) / BURST_MEMORY)


def expected_entries(forecast: Forecast, seconds: float) -> float:
    """How many entries will have been posted after so many seconds: ∫ λ."""
    return _summed(forecast, seconds, order=0)


def expected_waiting(forecast: Forecast, seconds: float) -> float:
    """The entry-seconds they will have waited by then: ∫ λ(s)(t - s) ds."""
    return _summed(forecast, seconds, order=1)


def _summed(forecast: Forecast, seconds: float, order: int) -> float:
    middles = [_STEP * (step + 0.5) for step in range(round(seconds / _STEP))]
    return sum(
        rate_at(forecast, forecast.start + middle) * _STEP * (seconds - middle) ** order
        for middle in middles
    )
