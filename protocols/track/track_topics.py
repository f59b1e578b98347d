"""Track queries as topics: ``/track?query=`` of a hub, or of Superfeedr's host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote

from protocols.protocol_errors import InvalidValue
from protocols.track.parsing import parse_query
from protocols.track.query import Query
from protocols.urls import normal_url

TRACK_PATH: Final = "/track"
FORMATS: Final = ("atom", "json")

_SUPERFEEDR: Final = re.compile(
    r"https?://(?:track\.superfeedr\.com/|(?:www\.|push\.)?superfeedr\.com/track"
    r"(?:/(?P<word>[^/]*))?)",
)
"""Superfeedr's URLs, without the query: the current one, and older ones, which may have
a word in the path.
"""
_WORDS: Final = re.compile(r"[^\s,]+")
_NOT_FOLLOWED: Final = ("lat", "lon", "within")
"""Parameters of older queries that are refused: only entries with a place match
them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackTopic:
    """``text`` is the query as it was written; ``format`` is "" if none is named."""

    query: Query
    text: str
    format: str = ""


def is_track_topic(topic: str, public_url: str) -> bool:
    """Whether a topic names a query, valid or not. ``public_url`` is the hub's own."""
    address = _address(topic)
    is_own = address == normal_url(public_url + TRACK_PATH)
    return is_own or _SUPERFEEDR.fullmatch(address) is not None


def _address(topic: str) -> str:
    return normal_url(topic.strip()).partition("#")[0].partition("?")[0]


def read_track_topic(topic: str, public_url: str) -> TrackTopic | None:
    """Read a topic's query; None for a topic that names no query.

    Raises `InvalidValue` if the query is missing or invalid, or the format unknown.
    """
    if not is_track_topic(topic, public_url):
        return None
    given = topic.strip().partition("#")[0].partition("?")[2]
    try:
        parameters = parse_qs(given, max_num_fields=100)
    except ValueError:
        raise InvalidValue("topic", "at most 100 parameters") from None
    texts = parameters.get("query") or _older_query(topic, parameters)
    if len(texts) != 1:
        raise InvalidValue("topic", "one ?query= with a track query", topic)
    format = parameters.get("format", [""])[0].lower()
    if format and format not in FORMATS:
        raise InvalidValue("format", " or ".join(FORMATS), format)
    return TrackTopic(query=parse_query(texts[0]), text=texts[0], format=format)


def _older_query(topic: str, parameters: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """``/track/word`` or ``/track?include=a,b&exclude=c&lang=en`` as a query.

    Empty if the topic is neither.
    """
    found = _SUPERFEEDR.fullmatch(_address(topic))
    if found is None:
        return []
    if any(name in parameters for name in _NOT_FOLLOWED):
        expected = f"a track query without {', '.join(_NOT_FOLLOWED)}"
        raise InvalidValue("topic", expected, topic)
    wanted = [unquote(found["word"] or "").replace("+", " ")]
    wanted += parameters.get("include", [])
    flags = [f"language:{each}" for each in parameters.get("lang", [])]
    for name in ("porn", "bozo"):
        flags += [f"{name}:{each}" for each in parameters.get(name, [])]
    unwanted = _WORDS.findall(" ".join(parameters.get("exclude", [])))
    words = [*_WORDS.findall(" ".join(wanted)), *(f"-{each}" for each in unwanted)]
    return [" ".join([*words, *flags])] if words or flags else []
