"""Where a differential answer (3.4) begins: what ``since`` is asked with.

Both bounds are inclusive. Some servers name the time of an answer only after they have
looked for changes, so that what changes in between is in no answer. Therefore the next
one begins a little earlier; what comes twice by that is told by its content.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from protocols.feeds.valuerules import read_time

OVERLAP: Final = timedelta(seconds=5)
LONGEST: Final = 2_000
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + OVERLAP


def cursor_after(token: str, as_of: str) -> str:
    """What to ask with next; "" if neither says.

    ``sync_token = base64( JSON.stringify({ "t": "<as_of ISO timestamp>" }) )``: one
    of this form is moved, any other is taken as it is.
    """
    named = _time_of_token(token)
    if named is not None:
        return token_of(_earlier(named))
    if token and len(token) <= LONGEST:
        return token
    moment, has_zone = read_time(as_of)
    return time_of(_earlier(moment)) if moment and has_zone else ""


def _earlier(moment: datetime) -> datetime:
    """Times begin with the year 1, which is what a server says that has none."""
    return max(moment, _FIRST) - OVERLAP


def token_of(moment: datetime) -> str:
    return base64.b64encode(orjson.dumps({"t": time_of(moment)})).decode()


def time_of(moment: datetime) -> str:
    """With ``Z``: a ``+`` is lost where a query is read carelessly, and a time without
    a zone is taken for a local one."""
    return f"{moment.isoformat('T', 'milliseconds')[:23]}Z"


def _time_of_token(token: str) -> datetime | None:
    """Standard or URL-safe alphabet, padded or not."""
    plain = token.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        padded = plain + "=" * (-len(plain) % 4)
        document = orjson.loads(base64.b64decode(padded, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(document, dict) or set(document) != {"t"}:
        return None
    moment, has_zone = read_time(document["t"])
    return moment if has_zone else None
