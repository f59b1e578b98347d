"""Parameters of the Superfeedr-compatible API, in every form its clients send them.

Query and body are one, whatever the method; the body wins. ``search[feed][url]``,
``search[feed.url]`` and JSON's ``{"search": {"feed": {"url": …}}}`` are all
``search.feed.url``; ``hub.url[]`` is a repeated ``hub.url``. Empty parameters are
absent ones, and names nobody knows are ignored. Errors name the parameter at fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from protocols.errors import InvalidValue
from protocols.single_values import only_value, required_value
from protocols.superfeedr.bodies import Pairs, read_body, read_query
from protocols.websub.callbacks import LONGEST_URL, read_web_url

TRUE: Final = ("true", "1", "yes", "on")
FALSE: Final = ("false", "0", "no", "off")

_LONGEST_NUMBER: Final = 20
_TWO_MEANINGS = frozenset({"callback", "topic", "mode", "url", "secret"})
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The longest topic and callback that are taken, in characters."""

    topic: int = LONGEST_URL
    callback: int = 250


DEFAULT_LENGTHS: Final = Lengths()


@dataclass(frozen=True, slots=True)
class Parameters:
    """Values by dotted name, those of one name in the order they came.

    What is documented without ``hub.``, like ``format`` and ``count``, is also found
    with it; but ``callback`` is JSONP's and ``hub.callback`` the subscriber's.
    """

    values: Mapping[str, tuple[str, ...]]
    lengths: Lengths = DEFAULT_LENGTHS

    def all(self, name: str) -> tuple[str, ...]:
        found = self.values.get(name)
        if found is None and name not in _TWO_MEANINGS:
            found = self.values.get(f"hub.{name}")
        return found or ()

    def one(self, name: str, default: str = "") -> str:
        """The only value. Raises `InvalidValue` where two contradict each other."""
        return only_value(name, set(self.all(name)), default)

    def required(self, name: str, expected: str) -> str:
        """Raises `InvalidValue` if it is missing."""
        return required_value(name, self.one(name), expected)

    def flag(self, name: str, default: bool = False) -> bool:
        """Raises `InvalidValue`."""
        value = self.one(name).strip().lower()
        if not value:
            return default
        if value not in TRUE + FALSE:
            raise InvalidValue(name, "true or false", value)
        return value in TRUE

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number, both ends included. Raises `InvalidValue`.

        What is out of bounds is told and not cut: who asks for 60 and silently gets
        50 takes the 50 for all there are.
        """
        value = self.one(name).strip()
        if not value:
            return default
        digits = value.lstrip("0")[:_LONGEST_NUMBER] or "0"
        is_whole = value.isascii() and value.isdigit()
        if not is_whole or not least <= int(digits) <= most:
            raise InvalidValue(name, f"a whole number from {least} to {most}", value)
        return int(digits)

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """One of these in any case; None if it is absent. Raises `InvalidValue`."""
        value = self.one(name).strip().lower()
        if not value:
            return None
        try:
            return choices(value)
        except ValueError:
            raise InvalidValue(name, f"one of {', '.join(choices)}", value) from None

    def under(self, name: str) -> dict[str, str]:
        """What is nested in a parameter: ``search`` gives ``{"feed.url": …}``.

        Raises `InvalidValue` where two values contradict each other.
        """
        prefix = f"{name}."
        names = [each for each in self.values if each.startswith(prefix)]
        return {each.removeprefix(prefix): self.one(each) for each in names}

    def topic(self) -> str:
        """``hub.topic``; its fragment means something here (Superfeedr 1.10).

        Raises `InvalidValue`, also if it is missing.
        """
        value = self.required("hub.topic", "the URL of the topic").strip()
        if len(value) > self.lengths.topic:
            expected = f"a URL of at most {self.lengths.topic} characters"
            raise InvalidValue("hub.topic", expected)
        return value

    def callback(self) -> str:
        """``hub.callback``. Raises `InvalidValue`, also if it is missing."""
        expected = "the URL of the subscriber's callback"
        value = self.required("hub.callback", expected).strip()
        if len(value) > self.lengths.callback:
            expected = f"a URL of at most {self.lengths.callback} characters"
            raise InvalidValue("hub.callback", expected)
        return read_web_url(value, "hub.callback", allows_fragment=False)


def read_parameters(
    query: str,
    content_type: str = "",
    body: bytes = b"",
    lengths: Lengths = DEFAULT_LENGTHS,
) -> Parameters:
    """Raises `InvalidValue` naming ``query`` or ``body``."""
    merged = _gather(read_query(query)) | _gather(read_body(content_type, body))
    return Parameters({name: tuple(values) for name, values in merged.items()}, lengths)


def _gather(pairs: Pairs) -> dict[str, list[str]]:
    gathered: dict[str, list[str]] = {}
    for name, value in pairs:
        if value.strip():
            gathered.setdefault(_dotted(name), []).append(value)
    return gathered


def _dotted(name: str) -> str:
    """``search[feed][url]`` as ``search.feed.url``; ``[]`` and ``[3]`` say nothing."""
    head, bracket, _ = name.partition("[")
    if not bracket:
        return name.strip()
    inner = [each for each in _BRACKETS.findall(name) if each and not each.isdigit()]
    return ".".join([head.strip(), *inner])
