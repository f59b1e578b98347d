"""One document given to one reader, and whether that kept its promise."""

from __future__ import annotations

from time import process_time
from typing import Final

import msgspec

from tests.fuzzing.contracts import Contract

MOST_SECONDS: Final = 10.0
"""Of the processor, for one document, read several times over: nothing that has 64 KiB
takes a tenth of it, but for what takes squared time."""


def complaint(contract: Contract, body: bytes, seconds: float = MOST_SECONDS) -> str:
    """What was not as promised, "" for nothing."""
    begun = process_time()
    first = _reading(contract, body)
    taken = process_time() - begun
    if isinstance(first, str):
        return first
    if taken > seconds:
        return f"took {taken:.1f} s of the processor"
    return "" if _reading(contract, body) == first else "read differently a second time"


def _reading(contract: Contract, body: bytes) -> bytes | str:
    """What it says, written down; a text is what is wrong."""
    try:
        return msgspec.msgpack.encode(contract.read(body))
    except contract.errors as error:
        return str(error).encode("utf-8", "surrogatepass")
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"[:300]
