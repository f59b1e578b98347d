"""Cheap repairs of ill-formed XML, each a pass over the text.

CDATA sections and comments are left alone: there an ampersand is an ampersand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Final

from protocols.feeds.document import Document, Repair
from protocols.feeds.encoding import mend_utf8
from protocols.feeds.names import NAMESPACES

_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# Unclosed ones reach to the end, so that each is looked for only once.
_OPAQUE: Final = r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_AMPERSANDS: Final = re.compile(
    rf"{_OPAQUE}|&(?:#[xX](?P<hex>[0-9a-fA-F]{{1,8}});|#(?P<number>[0-9]{{1,8}});"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]{0,31});)?",
    re.DOTALL,
)
_XML_ENTITIES: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})
_PREFIXED: Final = re.compile(r"<([A-Za-z_][\w.-]{0,40}):|\s([A-Za-z_][\w.-]{0,40}):\w")
_DECLARED: Final = re.compile(r"\sxmlns:([A-Za-z_][\w.-]{0,40})\s*=")
_ROOT: Final = re.compile(r"<[A-Za-z_][^\s<>/]*")
_ROOT_ENDS: Final = ("</rss>", "</feed>", "</rdf:RDF>", "</RDF>", "</channel>")
_MOST_PREFIXES: Final = 50


def repair(document: Document) -> Document:
    """Do all that helps; the same document, unchanged, when nothing does."""
    text, repairs = _decode(document.body)
    for name, problem, mend in _STEPS:
        mended = mend(text)
        if mended != text:
            line = _line_of_difference(text, mended)
            repairs.append(Repair(name=name, problem=f"line {line}: {problem}"))
            text = mended
    if not repairs:
        return document
    return document.repaired(text.encode(), *repairs)


def _decode(body: bytes) -> tuple[str, list[Repair]]:
    try:
        return body.decode(), []
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        problem = (
            f"line {line}: {error.reason} at byte {error.start}: read as Windows-1252"
        )
        return mend_utf8(body), [Repair(name="bytes", problem=problem)]


def _line_of_difference(text: str, mended: str) -> int:
    """The first line on which they differ."""
    same, different = 0, min(len(text), len(mended)) + 1
    while different - same > 1:
        middle = (same + different) // 2
        if text.startswith(mended[same:middle], same):
            same = middle
        else:
            different = middle
    return text.count("\n", 0, same) + 1


def _without_controls(text: str) -> str:
    return _CONTROLS.sub("", text)


def _with_numeric_entities(text: str) -> str:
    """HTML's named entities as numbers, bare ampersands escaped, bad numbers gone."""
    return _AMPERSANDS.sub(_reference, text)


def _reference(match: re.Match[str]) -> str:
    written = match[0]
    if written.startswith("<") or match["name"] in _XML_ENTITIES:
        return written
    if match["name"]:
        characters = html5.get(f"{match['name']};", "")
        return (
            "".join(f"&#{ord(each)};" for each in characters) or f"&amp;{written[1:]}"
        )
    if match["hex"] or match["number"]:
        code = int(match["hex"], 16) if match["hex"] else int(match["number"])
        return written if _is_xml_character(code) else ""
    return "&amp;"


def _is_xml_character(code: int) -> bool:
    """XML 1.0 §2.2, production 2."""
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _with_declared_prefixes(text: str) -> str:
    """Declare the prefixes that are used without it, by their usual namespaces."""
    root = _ROOT.search(text)
    missing = [*dict.fromkeys(_undeclared(text))][:_MOST_PREFIXES]
    if root is None or not missing:
        return text
    declarations = "".join(
        f' xmlns:{prefix}="{NAMESPACES.get(prefix, (f"urn:undeclared:{prefix}",))[0]}"'
        for prefix in missing
    )
    return text[: root.end()] + declarations + text[root.end() :]


def _undeclared(text: str) -> Iterator[str]:
    known = {"xml", "xmlns", *_DECLARED.findall(text)}
    for in_tag, in_attribute in _PREFIXED.findall(text):
        prefix = in_tag or in_attribute
        if prefix not in known:
            yield prefix


def _without_trailer(text: str) -> str:
    """Nothing may follow the root element: scripts and counters often do."""
    ends = {text.rfind(end) + len(end) for end in _ROOT_ENDS if end in text}
    end = max(ends, default=len(text))
    return text[:end] if text[end:].strip() else text


_STEPS: Final = (
    ("characters", "control characters were dropped", _without_controls),
    (
        "entities",
        "entities that XML does not know were replaced",
        _with_numeric_entities,
    ),
    ("prefixes", "undeclared prefixes were declared", _with_declared_prefixes),
    ("trailer", "text after the end of the document was dropped", _without_trailer),
)
