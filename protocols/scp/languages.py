"""Language tags as all readers of collections take them."""

from __future__ import annotations

import re
from functools import lru_cache

_LANGUAGE = re.compile(r"[a-z]{2,3}")
_UNKNOWN = frozenset({"und", "mul", "mis", "zxx"})


@lru_cache(maxsize=512)
def reduce_language(tag: str) -> str:
    """``ll`` or ``ll-CC``: without script, variant and numbered region.

    "" for what names no language. A language of three letters stays so.
    """
    language, *rest = tag.strip().replace("_", "-").split("-")
    language = language.lower()
    if not _LANGUAGE.fullmatch(language) or language in _UNKNOWN:
        return ""
    for part in rest:
        if len(part) == 1:  # what follows is somebody's own
            break
        if len(part) == 2 and part.isascii() and part.isalpha():
            return f"{language}-{part.upper()}"
    return language
