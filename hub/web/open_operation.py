"""What is said of one operation outside of ``/api``, and the media types of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hub.web.operation import Parameter

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
OPML = "text/x-opml"

Contents = Mapping[str, str]
"""The shape of an answer by its media type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOperation:
    """A method on a path. ``plain_problems`` are told as text, ``problems`` as JSON."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, Contents]
    description: str = ""
    query: tuple[Parameter, ...] = ()
    form: tuple[Parameter, ...] = ()
    headers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    problems: tuple[int, ...] = (429,)
    plain_problems: tuple[int, ...] = ()
    is_opened: bool = False
