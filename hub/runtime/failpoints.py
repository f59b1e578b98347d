"""Named places where a test can kill the process, to see that nothing is lost.

``FANFARE_FAILPOINT=name:n`` sends SIGKILL to the process the n-th time (1 if not given)
it passes the place ``name``. Unset, a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal

_name, _, _count = os.environ.get("FANFARE_FAILPOINT", "").partition(":")
_remaining = int(_count or 1)


def failpoint(name: str) -> None:
    """Die here if this is the place and the time."""
    global _remaining
    if name != _name:
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
