"""The header fields of an answer, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Field = tuple[bytes, bytes]
"""A name in lower case, and a value without white space around it."""

_SINGULAR = frozenset(
    {
        *("age", "content-length", "content-type", "date", "etag", "expires"),
        *("last-modified", "location", "retry-after", "set-cookie"),
        *("x-ratelimit-reset",),
    }
)
"""Fields that are no lists: joined, two of them would make one that nobody sent."""


class AnswerHeaders(Mapping[str, str]):
    """By name in any case.

    RFC 9110 5.3: "A recipient MAY combine multiple field lines within a field section
    that have the same field name into one field line […] by appending each subsequent
    field line value to the initial field line value in order, separated by a comma".
    Of a field that is no list the first line counts.

    What is not UTF-8 has surrogates in it (``surrogateescape``). Most answers are never
    asked for any, which is why they are kept as they came.
    """

    __slots__ = ("_fields", "_values")

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._values: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._combined()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._combined())

    def __len__(self) -> int:
        return len(self._combined())

    def _combined(self) -> dict[str, str]:
        if self._values is None:
            lines: dict[str, list[str]] = {}
            for field, value in self._fields:
                name = str(field, "latin-1")
                if name not in lines or name not in _SINGULAR:
                    text = str(value, "utf-8", "surrogateescape")
                    lines.setdefault(name, []).append(text)
            self._values = {name: ", ".join(each) for name, each in lines.items()}
        return self._values
