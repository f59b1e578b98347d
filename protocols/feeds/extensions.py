"""Keep what the entry model has no field for, as written, grouped by prefix.

An element becomes its text. One with attributes or children becomes a mapping of both,
with its text under ``value``; a repeated one becomes a list. Attributes and children of
another namespace than the element's are named ``prefix:name``. Mixed text and elements,
and anything below `MAX_EXTENSION_DEPTH`, are kept as XML in a text, under ``markup``.
``xml:`` attributes are not kept.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, cast

from protocols.feeds.element import Element, local_name, namespace_of
from protocols.feeds.limits import MAX_ATTRIBUTES, MAX_EXTENSION_DEPTH
from protocols.feeds.markup import markup_inside
from protocols.feeds.namespaces import NAMESPACES, PREFIXES, XHTML, XML, usual_uri

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Group: TypeAlias = dict[str, Json]
Groups: TypeAlias = dict[str, Group]
Attributes: TypeAlias = dict[str, str]
Inside: TypeAlias = list[tuple[Element, Attributes]]


def keep_element(
    groups: Groups,
    element: Element,
    attributes: Attributes | None = None,
    inside: Inside | None = None,
) -> None:
    """Keep an element under its prefix and local name, unless it is empty.

    ``attributes`` are the element's, and ``inside`` is what `parts_of` returns for it,
    if the caller has read them already; both may be changed.
    """
    if attributes is None:
        attributes = dict(element.items())
    value = _value(element, attributes, MAX_EXTENSION_DEPTH - 1, inside)
    if value:
        prefix, name = _place(element.tag)
        keep_value(groups, prefix or _own_prefix(element), name, value)


def parts_of(element: Element) -> Inside:
    """The child elements, each with its attributes."""
    return [(child, dict(child.items())) for child in element]


def keep_value(groups: Groups, prefix: str, name: str, value: Json) -> None:
    group = groups.get(prefix)
    if group is None:
        groups[prefix] = {name: value}
    else:
        _put(group, name, value)


@lru_cache(4096)
def _place(tag: str) -> tuple[str, str]:
    """The usual prefix of a tag's namespace, and the tag's local name.

    The prefix is "" if the namespace has no usual one.
    """
    return PREFIXES.get(usual_uri(namespace_of(tag)), ""), local_name(tag)


def _own_prefix(element: Element) -> str:
    """The document's prefix, or the namespace's URI if another namespace usually has
    that prefix.
    """
    own = element.prefix
    return own if own and own not in NAMESPACES else namespace_of(element.tag)


def _value(
    element: Element, attributes: Attributes, depth: int, inside: Inside | None = None
) -> str | Group:
    text = (element.text or "").strip()
    group = _named(element, attributes) if attributes else {}
    if inside is None and len(element):
        inside = parts_of(element)
    if inside:
        if not depth or _is_markup(inside):
            # Of a copy, because `markup_inside` takes elements out of the tree.
            _put(group, "markup", markup_inside(deepcopy(element)))
            return group
        _put_inside(group, element.tag, inside, depth)
    if not group:
        return text
    if text:
        _put(group, "value", text)
    return group


def _named(element: Element, attributes: Attributes) -> Group:
    """The attributes by the names they are kept under. Most have no namespace."""
    if len(attributes) > MAX_ATTRIBUTES:
        attributes = dict(islice(attributes.items(), MAX_ATTRIBUTES))
    if "{" not in "".join(attributes):
        return cast(Group, attributes)
    return {
        _attribute_name(element, name) if name[0] == "{" else name: value
        for name, value in attributes.items()
        if not name.startswith(XML)
    }


def _put_inside(group: Group, tag: str, inside: Inside, depth: int) -> None:
    own = tag[: tag.rfind("}") + 1]
    for child, attributes in inside:
        if attributes or len(child):
            value: str | Group = _value(child, attributes, depth - 1)
        else:
            value = (child.text or "").strip()
        if value:
            name = child.tag.removeprefix(own)
            _put(group, _foreign_name(child) if name[0] == "{" else name, value)


def _is_markup(inside: Inside) -> bool:
    for child, _ in inside:
        tail = child.tail
        if (tail and not tail.isspace()) or child.tag.startswith(XHTML):
            return True
    return False


def _attribute_name(element: Element, name: str) -> str:
    uri = namespace_of(name)
    if uri == namespace_of(element.tag):
        return local_name(name)
    prefix, local = _place(name)
    if not prefix:
        own = (own for own, each in element.nsmap.items() if own and each == uri)
        prefix = next(own, "")
        prefix = prefix if prefix and prefix not in NAMESPACES else uri
    return f"{prefix}:{local}"


def _foreign_name(child: Element) -> str:
    prefix, name = _place(child.tag)
    return f"{prefix or _own_prefix(child)}:{name}"


def _put(group: Group, name: str, value: Json) -> None:
    """Add a value to a group; values with the same name become a list."""
    if name not in group:
        group[name] = value
        return
    present = group[name]
    if isinstance(present, list):
        present.append(value)
    else:
        group[name] = [present, value]
