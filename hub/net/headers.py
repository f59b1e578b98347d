"""The header fields of an answer, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Field = tuple[bytes, bytes]
"""A name in lower case, and a value without white space around it."""


class AnswerHeaders(Mapping[str, str]):
    """By name in any case; of a field that is repeated, the first.

    What is not UTF-8 has surrogates in it (``surrogateescape``). Most answers are never
    asked for any, which is why they are kept as they came.
    """

    __slots__ = ("_fields", "_values")

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._values: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._decoded()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def _decoded(self) -> dict[str, str]:
        if self._values is None:
            self._values = {
                str(name, "latin-1"): str(value, "utf-8", "surrogateescape")
                for name, value in reversed(self._fields)
            }
        return self._values
