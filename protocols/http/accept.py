"""``Accept`` (RFC 9110 12.5.1): which media types a client names, and how much it wants
each."""

from __future__ import annotations


def quality(accept: str, media_type: str) -> float:
    """From 0 to 1, how much a type is wanted that is named; 0 for one that is not.

    Ranges (``*/*``) name no type. A weight that is no number counts as 1.
    """
    best = 0.0
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        if name == media_type:
            best = max(best, _weight(parameters))
    return best


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 1.0
    return 1.0
