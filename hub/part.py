"""What runs in the background of a hub, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

Part = Callable[[], Coroutine[Any, Any, None]]
"""Starts something that runs until it is cancelled."""
