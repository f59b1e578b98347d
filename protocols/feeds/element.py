"""The part of an lxml element that the readers use, with its types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Protocol


class Element(Protocol):
    """An XML element. The tree never contains comments or processing instructions."""

    tag: str
    text: str | None
    tail: str | None

    @property
    def attrib(self) -> MutableMapping[str, str]: ...

    @property
    def nsmap(self) -> Mapping[str | None, str]: ...

    @property
    def prefix(self) -> str | None: ...

    def get(self, key: str) -> str | None: ...

    def keys(self) -> list[str]: ...

    def items(self) -> list[tuple[str, str]]: ...

    def getparent(self) -> Element | None: ...

    def remove(self, element: Element) -> None: ...

    def iter(self, *tags: str) -> Iterator[Element]: ...

    def itertext(self) -> Iterator[str]: ...

    def __iter__(self) -> Iterator[Element]: ...

    def __len__(self) -> int: ...


def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def namespace_of(tag: str) -> str:
    return tag[1:].rpartition("}")[0]


def text_of(element: Element) -> str:
    """All text inside an element, trimmed, without its markup."""
    if len(element):
        return "".join(element.itertext()).strip()
    text = element.text
    return text.strip() if text else ""
