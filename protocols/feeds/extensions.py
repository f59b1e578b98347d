"""What the entry model has no place for, kept as it came, grouped by prefix.

An element becomes its text; one with attributes or children becomes a mapping of
both, its text under ``value``; a repeated one becomes a list. Attributes and children
of another namespace than the element's are named ``prefix:name``. Where text and
elements are mixed, and below `MAX_EXTENSION_DEPTH`, what is inside is kept as XML in
a text, under ``markup``. ``xml:`` attributes are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from protocols.errors import LimitExceeded
from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.limits import MAX_ATTRIBUTES, MAX_EXTENSION_DEPTH
from protocols.feeds.markup import markup_inside
from protocols.feeds.names import NAMESPACES, PREFIXES, XHTML, XML

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Group: TypeAlias = dict[str, Json]
Groups: TypeAlias = dict[str, Group]

_USUAL: Final[Mapping[str, str]] = {
    ("{" + uri if uri else ""): prefix for uri, prefix in PREFIXES.items()
}
"""Prefixes by what precedes "}" in a Clark name."""


def keep_element(groups: Groups, element: Element) -> None:
    """Keep an element under its prefix and local name, unless it says nothing."""
    value = _value(element, MAX_EXTENSION_DEPTH - 1)
    if value:
        braced, _, name = element.tag.rpartition("}")
        prefix = _USUAL.get(braced) or _prefix(braced[1:], element.prefix)
        keep_value(groups, prefix, name, value)


def keep_value(groups: Groups, prefix: str, name: str, value: Json) -> None:
    _put(groups.setdefault(prefix, {}), name, value)


def _prefix(uri: str, own: str | None) -> str:
    """The usual prefix of a namespace, else the document's own if it is free."""
    if uri in PREFIXES:
        return PREFIXES[uri]
    return own if own and own not in NAMESPACES else uri


def _value(element: Element, depth: int) -> str | Group:
    text = (element.text or "").strip()
    attributes, has_children = element.items(), len(element) > 0
    if not attributes and not has_children:
        return text
    group = _attributes(element, attributes)
    if has_children and (not depth or _is_markup(element)):
        _put(group, "markup", markup_inside(element))
        return group
    for child in element if has_children else ():
        value = _value(child, depth - 1)
        if value:
            _put(group, _child_name(element, child), value)
    if text and not group:
        return text
    if text:
        _put(group, "value", text)
    return group


def _attributes(element: Element, attributes: list[tuple[str, str]]) -> Group:
    if len(attributes) > MAX_ATTRIBUTES:
        raise LimitExceeded(f"attributes of <{element.tag[:80]}>", MAX_ATTRIBUTES)
    group: Group = {}
    for name, value in attributes:
        if name[0] != "{":
            group[name] = value
        elif not name.startswith(XML):
            group[_attribute_name(element, name)] = value
    return group


def _is_markup(element: Element) -> bool:
    for child in element:
        tail = child.tail
        if (tail and not tail.isspace()) or child.tag.startswith(XHTML):
            return True
    return False


def _attribute_name(element: Element, name: str) -> str:
    uri = namespace_of(name)
    if uri == namespace_of(element.tag):
        return local_name(name)
    own = (prefix for prefix, each in element.nsmap.items() if prefix and each == uri)
    return f"{_prefix(uri, next(own, None))}:{local_name(name)}"


def _child_name(element: Element, child: Element) -> str:
    braced, _, name = child.tag.rpartition("}")
    if not braced or braced == element.tag.rpartition("}")[0]:
        return name
    return f"{_prefix(braced[1:], child.prefix)}:{name}"


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
