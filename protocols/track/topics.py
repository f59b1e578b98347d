"""Track queries as topics: ``/track?query=`` of a hub, or of Superfeedr's own host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from protocols.errors import InvalidValue
from protocols.track.parsing import parse_query
from protocols.track.query import Query
from protocols.urls import normal_url

TRACK_PATH: Final = "/track"
FORMATS: Final = ("atom", "json")

_SUPERFEEDR: Final = frozenset(
    {"http://track.superfeedr.com/", "https://track.superfeedr.com/"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackTopic:
    """``text`` is the query as it was written; ``format`` is "" if none is named."""

    query: Query
    text: str
    format: str = ""


def is_track_topic(topic: str, public_url: str) -> bool:
    """Whether it names a query, readable or not. ``public_url`` is the hub's own."""
    address = normal_url(topic.strip()).partition("#")[0].partition("?")[0]
    return address in _SUPERFEEDR or address == normal_url(public_url + TRACK_PATH)


def read_track_topic(topic: str, public_url: str) -> TrackTopic | None:
    """None for a topic that names no query.

    Raises `InvalidValue` for a query that is missing or cannot be read, and for a
    format that there is not.
    """
    if not is_track_topic(topic, public_url):
        return None
    given = topic.strip().partition("#")[0].partition("?")[2]
    try:
        parameters = parse_qs(given, max_num_fields=100)
    except ValueError:
        raise InvalidValue("topic", "at most 100 parameters") from None
    texts = parameters.get("query", [])
    if len(texts) != 1:
        raise InvalidValue("topic", "one ?query= that has a track query", topic)
    format = parameters.get("format", [""])[0].lower()
    if format and format not in FORMATS:
        raise InvalidValue("format", " or ".join(FORMATS), format)
    return TrackTopic(query=parse_query(texts[0]), text=texts[0], format=format)
