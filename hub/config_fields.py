"""How a setting is declared: once, for its variable, its option and its help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

PREFIX = "FANFARE_"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How one field of `Settings` is read and described."""

    field: str
    shown_default: str
    help: str
    read: Callable[[str], object]
    is_secret: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def option(self) -> str:
        return "--" + self.field.replace("_", "-")


def setting(
    default: T,
    read: Callable[[str], T],
    help: str,
    *,
    shown: str | None = None,
    is_secret: bool = False,
) -> T:
    """Declare a field of `Settings`; ``shown`` is its default as people write it."""
    text = str(default) if shown is None else shown
    metadata = {"read": read, "help": help, "shown": text, "is_secret": is_secret}
    return field(default=default, metadata=metadata)
