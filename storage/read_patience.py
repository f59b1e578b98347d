"""How long a read waits for a server that is away."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Final

READ_PATIENCE: Final = ContextVar("read_patience", default=math.inf)
"""In seconds; after that the read raises `StorageError`. Background work waits without
limit; it is set where somebody waits for an answer. A file is never away."""
