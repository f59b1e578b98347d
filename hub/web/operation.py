"""What is said of an operation of the API, for its guard and its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hub.web.decoding import DEFAULT_PAGE, LARGEST_ID, LARGEST_PAGE, Document
from storage.records import Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the query, or of a form. Numbers go from ``least`` to
    ``largest``; ``longest`` is in characters."""

    name: str
    help: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    default: int | bool | None = None
    least: int | None = None
    largest: int | None = None
    longest: int | None = None
    is_required: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method on a path below ``/api``. ``right`` None: everybody may."""

    method: str
    path: str
    right: Right | None
    summary: str
    answers: Mapping[int, str]  # the shape of the answer by status
    query: tuple[Parameter, ...] = ()
    body: type[Document] | None = None
    problems: tuple[int, ...] = field(default=())  # besides those all have


PAGE = (
    Parameter(
        name="after",
        help="the page behind this id",
        kind="integer",
        default=0,
        least=0,
        largest=LARGEST_ID,
    ),
    Parameter(
        name="limit",
        help="the length of the page",
        kind="integer",
        default=DEFAULT_PAGE,
        least=1,
        largest=LARGEST_PAGE,
    ),
)
