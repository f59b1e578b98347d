"""How long a read waits for a server that is away."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Final

READ_PATIENCE: Final = ContextVar("read_patience", default=math.inf)
"""In seconds; then it raises `StorageError`. Whoever works in the background has time;
for somebody who waits for an answer it is set. A file is never away."""
