"""What the entry model has no place for, kept as it came, grouped by prefix.

An element becomes its text; one with attributes or children becomes a mapping of
both, its text under ``value``; a repeated one becomes a list.
"""

from __future__ import annotations

from typing import TypeAlias

from protocols.errors import LimitExceeded
from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.limits import MAX_ATTRIBUTES, MAX_EXTENSION_DEPTH
from protocols.feeds.names import NAMESPACES, PREFIXES, XML

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Group: TypeAlias = dict[str, Json]
Groups: TypeAlias = dict[str, Group]


def keep_element(groups: Groups, element: Element) -> None:
    """Keep an element under its prefix and local name, unless it says nothing."""
    value = _value(element, MAX_EXTENSION_DEPTH)
    if value:
        keep_value(groups, _prefix(element), local_name(element.tag), value)


def keep_value(groups: Groups, prefix: str, name: str, value: Json) -> None:
    _put(groups.setdefault(prefix, {}), name, value)


def _prefix(element: Element) -> str:
    """The usual prefix of a namespace, else the document's own if it is free."""
    uri = namespace_of(element.tag)
    if uri in PREFIXES:
        return PREFIXES[uri]
    is_free = element.prefix and element.prefix not in NAMESPACES
    return (element.prefix if is_free else None) or uri


def _value(element: Element, depth: int) -> str | Group:
    attributes = element.attrib
    if not attributes and not len(element):
        return (element.text or "").strip()
    if len(attributes) > MAX_ATTRIBUTES:
        raise LimitExceeded(f"attributes of <{element.tag[:80]}>", MAX_ATTRIBUTES)
    group: Group = {
        local_name(name): value
        for name, value in attributes.items()
        if not name.startswith(XML)
    }
    if depth:
        for child in element:
            value = _value(child, depth - 1)
            if value:
                _put(group, local_name(child.tag), value)
    text = (element.text or "").strip()
    if text and not group:
        return text
    if text:
        group["value"] = text
    return group


def _put(group: Group, name: str, value: Json) -> None:
    """Repeated names make a list."""
    if name not in group:
        group[name] = value
        return
    present = group[name]
    if isinstance(present, list):
        present.append(value)
    else:
        group[name] = [present, value]
