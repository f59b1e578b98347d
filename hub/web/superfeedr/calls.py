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
    """What is asked, and who asks. ``request``: its body has been read."""

    parameters: Parameters
    principal: Principal
    request: Request

    @property
    def format(self) -> BodyFormat | None:
        """``format``, else what ``Accept`` names; None: neither does.

        Raises `InvalidValue`.
        """
        chosen = self.parameters.choice("format", BodyFormat)
        if chosen is None and accepts_json(self.request):
            return BodyFormat.JSON
        return chosen


class Effect(Enum):
    """What a mode does besides answering."""

    NONE = auto()
    SENDS = auto()  # something to a callback; by GET, as it is documented
    CHANGES = auto()  # what is stored


Handler = Callable[[Call], Awaitable[Response]]
"""Raises `InvalidValue`, `Problem`, `ServiceError` and `StorageError`: the endpoint
tells them as text, or as JSON to whom accepts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """``scope`` None: any valid token; ``is_open``: no token is needed."""

    answer: Handler
    scope: TokenScope | None = None
    is_open: bool = False
    effect: Effect = Effect.NONE


Modes = Mapping[str, Mode]
"""By the value of ``hub.mode``."""
