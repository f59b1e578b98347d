"""How the hub was over time, as it is kept for its plots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec


class SeriesSample(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in the span of time that begins ``at``.

    ``values``: by series the mean and the highest value; one that is missing was not
    measured. ``delays``: by distribution how many fell into which of its bins, the
    shortest first.
    """

    at: datetime
    values: Mapping[str, tuple[float, float]]
    delays: Mapping[str, tuple[int, ...]]
