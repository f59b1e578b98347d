"""The garbage collector, told what stays."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (2_000, 5, 200)
"""Of the three generations. The entries of one large feed are a hundred thousand
objects that need no collector. Python's own thresholds have it walk over all of them at
once, again and again; with these it looks at ten thousand at a time."""


def settle() -> None:
    """Take all that start-up made out of the collector's sight.

    Modules, tables and settings live as long as the process. Walked over and over by
    full collections they cost a busy hub a tenth of its time.
    """
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()
