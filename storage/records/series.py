"""Samples of how the hub behaved over time, for its plots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec


class SeriesSample(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in the span of time that begins ``at``.

    ``values``: for each series the mean and the highest value; a series that is missing
    was not measured. ``delays``: for each distribution the count in each of its bins,
    the shortest first. ``starts``: when the hub was started in it, in Unix seconds.
    """

    at: datetime
    values: Mapping[str, tuple[float, float]]
    delays: Mapping[str, tuple[int, ...]]
    starts: tuple[int, ...] = ()
