"""Why the hub closes a live connection: websocket close codes and their reasons.

3000 to 3499 mean "come back", 3500 to 3999 "do not"; below are those of RFC 6455.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Closing:
    code: int
    reason: str  # at most 123 bytes, RFC 6455 5.5


NOT_TEXT: Final = Closing(1003, "expected text messages")
NOT_UTF_8: Final = Closing(1007, "expected text in UTF-8")
POLICY: Final = Closing(1008, "too many messages")
FAILED: Final = Closing(1011, "an error of the hub")
SHUTDOWN: Final = Closing(3001, "the hub is shutting down; reconnect")
SLOW: Final = Closing(3008, "too slow; reconnect with the last cursor")
NOT_AUTHORIZED: Final = Closing(3500, "not authorized")
TOKEN_ENDED: Final = Closing(3500, "not authorized: the token was revoked or expired")
NO_TOPIC_LEFT: Final = Closing(3501, "none of its topics is here any more")
