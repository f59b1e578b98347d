"""Names of elements that came in capitals, or in a namespace by another name.

XML tells them apart, publishers do not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.names import usual_uri

_CONTAINERS: Final = frozenset({"channel", "entry", "item"})
_USUAL: Final = {
    name.lower(): name
    for name in (
        *("commentRss", "fileSize", "isPermaLink", "lastBuildDate", "managingEditor"),
        *("origLink", "pubDate", "skipDays", "skipHours", "textInput", "updateBase"),
        *("updateFrequency", "updatePeriod", "webMaster", "Point"),
    )
}


@lru_cache(4096)
def usual_name(tag: str) -> str:
    """A tag as it is usually written: ``pubDate`` for ``PUBDATE`` and ``PubDate``."""
    name, uri = local_name(tag), namespace_of(tag)
    usual = _USUAL.get(name.lower(), name.lower())
    return f"{{{usual_uri(uri)}}}{usual}" if uri else usual


def has_containers_in_capitals(root: Element) -> bool:
    """Whether there are channels, items or entries that no reader would find."""
    names = {local_name(element.tag) for element in root.iter()}
    return any(name.lower() in _CONTAINERS for name in names - _CONTAINERS)


def use_usual_names(root: Element) -> None:
    """Rename all elements and their attributes."""
    for element in root.iter():
        element.tag = usual_name(element.tag)
        for name, value in element.items():
            usual = usual_name(name)
            if usual != name:
                del element.attrib[name]
                element.attrib[usual] = value
