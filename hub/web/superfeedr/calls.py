"""A decoded request to the API, and the table of modes that answer it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from starlette.requests import Request
from starlette.responses import Response

from hub.services.token_authentication import Principal
from hub.web.request_input import combined_field
from protocols.http import quality
from protocols.live.live_messages import BodyFormat
from protocols.superfeedr.parameters import Parameters
from storage.records import TokenScope


def accepts_json(request: Request) -> bool:
    """Whether ``Accept`` names JSON, and does not prefer Atom."""
    accept = combined_field(request.headers, "accept")
    wanted = quality(accept, "application/json")
    return wanted > 0 and wanted >= quality(accept, "application/atom+xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to the API, with the principal who makes it.

    The body of ``request`` has been read.
    """

    parameters: Parameters
    principal: Principal
    request: Request

    @property
    def format(self) -> BodyFormat | None:
        """The parameter ``format``, or else what ``Accept`` names; None without both.

        Raises `InvalidValue`.
        """
        chosen = self.parameters.choice("format", BodyFormat)
        if chosen is None and accepts_json(self.request):
            return BodyFormat.JSON
        return chosen


class Effect(Enum):
    """What a mode does besides answering."""

    NONE = auto()
    SENDS = auto()  # sends to a callback; Superfeedr documents it as a GET
    CHANGES = auto()  # changes what is stored


Handler = Callable[[Call], Awaitable[Response]]
"""Answers a call. Raises `InvalidValue`, `Problem`, `ServiceError` and `StorageError`.

The endpoint answers these errors as text, or as JSON if the client accepts it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A mode. ``scope`` None: any valid token will do; ``is_open``: it needs none."""

    answer: Handler
    scope: TokenScope | None = None
    is_open: bool = False
    effect: Effect = Effect.NONE


Modes = Mapping[str, Mode]
"""Modes by the value of ``hub.mode``."""
