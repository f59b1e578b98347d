"""Places: GeoRSS (simple and GML) and the W3C's basic geo vocabulary."""

from __future__ import annotations

import re
from typing import Final

from protocols.feeds.drafts import Draft, HeadDraft
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.extensions import keep_element
from protocols.feeds.names import qualified
from protocols.feeds.scope import Scope
from protocols.model import Geo

_NUMBER = re.compile(r"[-+]?\d{1,3}(?:\.\d{0,30})?")


def read_point(text: str) -> Geo | None:
    """Latitude and longitude, with a blank or a comma between (both are in use)."""
    numbers = text.replace(",", " ").split()
    if len(numbers) < 2 or not all(map(_NUMBER.fullmatch, numbers[:2])):
        return None
    latitude, longitude = map(float, numbers[:2])
    if abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return Geo(latitude=latitude, longitude=longitude)


def _point(draft: Draft, element: Element, scope: Scope) -> None:
    """A head has no place of its own, and an entry only one."""
    point = read_point(text_of(element))
    if point is None or isinstance(draft, HeadDraft) or draft.geo not in (None, point):
        keep_element(draft.extensions, element)
    else:
        draft.geo = point


def _where(draft: Draft, element: Element, scope: Scope) -> None:
    """GML: the position of a point; lines, areas and details stay extensions.

    Handed the ``gml:Point`` itself by feeds that leave out what is around it.
    """
    inside = [each for each in element.iter() if local_name(each.tag) != "where"]
    names = [local_name(each.tag) for each in inside]
    is_point = names in (["Point", "pos"], ["Point", "coordinates"], ["pos"])
    position = read_point(_latitude_first(inside[-1])) if is_point else None
    has_details = any(each.attrib for each in inside)
    is_placed = position is not None and not isinstance(draft, HeadDraft)
    if is_placed and draft.geo is None:
        draft.geo = position
    if not is_placed or has_details or draft.geo != position:
        keep_element(draft.extensions, element)


def _latitude_first(element: Element) -> str:
    """``gml:coordinates`` are x and y (GML 2.1.2), ``gml:pos`` in GeoRSS is not."""
    text = text_of(element)
    if local_name(element.tag) == "pos":
        return text
    return " ".join(reversed(text.replace(",", " ").split()[:2]))


def _latitude(draft: Draft, element: Element, scope: Scope) -> None:
    draft.latitude = text_of(element)
    _meet(draft)


def _longitude(draft: Draft, element: Element, scope: Scope) -> None:
    draft.longitude = text_of(element)
    _meet(draft)


def _meet(draft: Draft) -> None:
    point = read_point(f"{draft.latitude} {draft.longitude}")
    if point and not isinstance(draft, HeadDraft) and draft.geo in (None, point):
        draft.geo = point
        draft.latitude = draft.longitude = ""


def _w3c_point(draft: Draft, element: Element, scope: Scope) -> None:
    for child in element:
        if child.tag in _COORDINATES:
            _COORDINATES[child.tag](draft, child, scope)
        else:
            keep_element(draft.extensions, child)


_COORDINATES: Final = qualified(
    "geo", {"lat": _latitude, "lon": _longitude, "long": _longitude}
)
GEO: Final = {
    **qualified("georss", {"point": _point, "where": _where}),
    **qualified("gml", {"Point": _where, "pos": _where}),
    **_COORDINATES,
    **qualified("geo", {"Point": _w3c_point}),
}
