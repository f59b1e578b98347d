"""What a document says, value by value, and which of it a reading does not say."""

from __future__ import annotations

import binascii
import contextlib
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from protocols.dates import parse_date
from protocols.feeds.constructs import read_mailbox
from protocols.feeds.references import resolve_references
from protocols.text import collapse, text_of_html

_XML = "{http://www.w3.org/XML/1998/namespace}"


class Value(NamedTuple):
    """``place`` is ``parent/child`` by prefix, with ``@name`` for an attribute."""

    place: str
    text: str


def values_of(document: bytes) -> Iterator[Value]:
    """Every text and every attribute of an XML document, but for white space."""
    parser = etree.XMLParser(remove_comments=True, remove_pis=True)
    for element in etree.fromstring(document, parser).iter():
        place = _place(element)
        for name, value in element.attrib.items():
            if value.strip():
                yield Value(f"{place}@{_attribute(name)}", value.strip())
        for text in (element.text, *(child.tail for child in element)):
            if text and text.strip():
                yield Value(place, text.strip())


def lost_values(document: bytes, reading: Any, base: str) -> Iterator[Value]:
    """Those of a document's values that are nowhere in what was read of it."""
    said = set(leaves(reading))
    everything = "\n".join(said)
    bases = (base, *(each for each in said if each.startswith("http")))
    for value in values_of(document):
        is_said = any(
            all(part in said or part in everything for part in parts)
            for parts in _forms(value.text, bases)
        )
        if not is_said:
            yield value


def _forms(text: str, bases: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The ways in which a reading may say it, each in one or more parts."""
    yield (text,)
    yield (collapse(text),)
    yield (text_of_html(text),)
    yield (urljoin(bases[0], text),)
    if "<" in text:
        yield from ((resolve_references(text, base),) for base in bases)
    moment = parse_date(text)
    if moment:
        yield (moment.isoformat(),)
    mailbox = read_mailbox(text)
    if mailbox.email:
        yield (mailbox.name, mailbox.email)
    with contextlib.suppress(ValueError):
        yield tuple(str(float(number)) for number in text.replace(",", " ").split())
    with contextlib.suppress(binascii.Error, ValueError):
        yield (b64decode(text, validate=True).decode().partition("<a")[0],)


def leaves(value: Any) -> Iterator[str]:
    """Every single value in JSON, as text."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        yield str(value)
        return
    for each in value:
        yield from leaves(each)


def _place(element: Any) -> str:
    parent = element.getparent()
    return f"{'' if parent is None else _name(parent)}/{_name(element)}"


def _name(element: Any) -> str:
    name = etree.QName(element).localname
    return f"{element.prefix}:{name}" if element.prefix else str(name)


def _attribute(name: str) -> str:
    return name.replace(_XML, "xml:").rpartition("}")[2]
