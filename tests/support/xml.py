"""Atom documents as tests read them: strictly, by prefix, and extensions as JSON."""

from __future__ import annotations

from typing import Any

from lxml import etree

PREFIXES = {
    "atom": "http://www.w3.org/2005/Atom",
    "dcterms": "http://purl.org/dc/terms/",
    "as": "http://activitystrea.ms/spec/1.0/",
    "at": "http://purl.org/atompub/tombstones/1.0",
    "ext": "urn:fanfare:extensions",
    "geo": "http://www.georss.org/georss",
    "sf": "http://superfeedr.com/xmpp-pubsub-ext",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_xml(document: bytes) -> Any:
    """The root; raises `lxml.etree.XMLSyntaxError` if it is not well-formed."""
    return etree.fromstring(document)


def find(element: Any, path: str) -> list[Any]:
    return list(element.iterfind(path, PREFIXES))


def texts(element: Any, path: str) -> list[str]:
    return [each.text or "" for each in find(element, path)]


def attributes(element: Any, path: str) -> list[dict[str, str]]:
    return [dict(each.attrib) for each in find(element, path)]


def read_extensions(element: Any) -> dict[str, Any]:
    """The inverse of how extensions are written; {} where there are none."""
    found = find(element, "ext:extensions")
    return {each.get("name"): _value(each) for node in found for each in node}


def _value(element: Any) -> Any:
    text = element.text or ""
    match element.get("type"):
        case "object":
            return {each.get("name"): _value(each) for each in element}
        case "list":
            return [_value(each) for each in element]
        case "number":
            return float(text) if set(text) - set("-0123456789") else int(text)
        case "boolean":
            return text == "true"
        case "null":
            return None
        case _:
            return text
