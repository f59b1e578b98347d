"""Elements of HTML, by what becomes of them in blocks."""

from __future__ import annotations

import re
from typing import Any, Final

INLINE: Final = frozenset(
    {
        *("abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del"),
        *("dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "math", "meter"),
        *("output", "progress", "q", "rp", "rt", "ruby", "s", "samp", "small", "span"),
        *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    }
)
"""Inside of a text."""
DROPPED: Final = frozenset(
    {
        *("applet", "base", "button", "canvas", "command", "dialog", "embed", "frame"),
        *("frameset", "head", "iframe", "input", "link", "map", "meta", "noembed"),
        *("noframes", "noscript", "object", "option", "param", "script", "select"),
        *("style", "svg", "template", "textarea", "title"),
    }
)
"""Left out with all that is in them."""


_UNSEEN = re.compile(
    r"(?:^|;)(?:display:none|visibility:hidden|(?:width|height):[01](?:px)?)"
    r"(?:;|!|$)",
    re.IGNORECASE,
)


def is_pixel(image: Any) -> bool:
    """Too small to see, or hidden: it is there to count who reads."""
    if any(
        (image.get(side) or "").strip().removesuffix("px") in ("0", "1")
        for side in ("width", "height")
    ):
        return True
    style = image.get("style")
    return bool(style) and bool(_UNSEEN.search("".join(style.split())))
