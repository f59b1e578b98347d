"""Elements of HTML, by what becomes of them in blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

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

_HIDING: Final = "display:none|visibility:hidden"
_UNSEEN: Final = re.compile(
    rf"(?:^|;)(?:{_HIDING}|(?:width|height):[01](?:px)?)(?:;|!|$)", re.IGNORECASE
)
_HIDDEN: Final = re.compile(rf"(?:^|;)(?:{_HIDING})(?:;|!|$)", re.IGNORECASE)
_Moved: TypeAlias = dict[tuple[Any, bool], list[str]]
"""Text that goes to the end of an element's own (True), or of its tail."""


def is_hidden(element: Any) -> bool:
    """Whether no reader sees it: by its attribute, or by its own style.

    ``hidden="until-found"`` is to be found, and so it is content (HTML, "The hidden
    attribute").
    """
    hidden = element.get("hidden")
    if hidden is not None and hidden.strip().lower() != "until-found":
        return True
    style = element.get("style")
    return bool(style) and bool(_HIDDEN.search("".join(style.split())))


def take_out(elements: Iterable[Any]) -> None:
    """Take elements, none of them the root, out of their tree; the text that follows
    them stays.

    Their tails are noted first: joined one by one, those of a long run would cost the
    square of its length.
    """
    moved: _Moved = {}
    for element in elements:
        parent = element.getparent()
        if tail := element.tail:
            before = element.getprevious()
            place = (parent, True) if before is None else (before, False)
            moved.setdefault(place, []).append(tail)
        parent.remove(element)
    for (place, is_inside), texts in moved.items():
        if is_inside:
            place.text = "".join((place.text or "", *texts))
        else:
            place.tail = "".join((place.tail or "", *texts))


def is_pixel(image: Any) -> bool:
    """Too small to see, or hidden: it is there to count who reads."""
    if any(
        (image.get(side) or "").strip().removesuffix("px") in ("0", "1")
        for side in ("width", "height")
    ):
        return True
    style = image.get("style")
    return bool(style) and bool(_UNSEEN.search("".join(style.split())))
