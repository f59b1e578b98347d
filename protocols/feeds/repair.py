"""Cheap repairs of ill-formed XML and JSON, each a pass over the text.

In XML, CDATA sections and comments are left alone: an ampersand is literal there.
Constructs without an end are closed where they must end: otherwise a title without an
end tag would contain the rest of its entry, and a CDATA section or comment without an
end the rest of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import html5
from itertools import chain
from typing import Final

from protocols.feeds.document import OpenedDocument, Repair
from protocols.feeds.namespaces import NAMESPACES
from protocols.feeds.text_encoding import mend_utf8

_OPAQUE_BEGINS: Final = re.compile(r"<!\[CDATA\[|<!--")
_END_OF: Final = {"<![CDATA[": "]]>", "<!--": "-->"}
_AROUND: Final = re.compile(r"<([A-Za-z_][\w:.-]{0,40})(?:\s[^<>]*)?>\s*\Z")
_LONGEST_TAG: Final = 500
_ALMOST_AN_END: Final = re.compile(r"\]{1,2}>?\s{0,4}\Z")
_MOST_ENDED: Final = 20
_ENTRY_TAG: Final = re.compile(r"</?(?:item|entry)[\s>]|</(?:channel|rss|feed)\s*>")

# A construct without an end extends to the end, so each is searched for only once.
_AFTER_BRACKET: Final = (
    r"!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+(?:\]\]>|\Z)"
    r"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
)
_XML_TOKEN: Final = re.compile(
    rf"<(?:{_AFTER_BRACKET}"
    r"|(?P<end>/?)(?P<name>(?:[A-Za-z][\w-]+:)?[A-Za-z][\w-]*)(?:\s[^<>]*?)?(?P<empty>/?)>)"
)
_LAST_END: Final = re.compile(r"</([\w:.-]{1,40})\s*>\s{0,40}\Z")
_CONTAINERS: Final = frozenset({"channel", "entry", "feed", "image", "item", "rss"})
_TEXTS: Final = frozenset(
    [
        *("title", "link", "guid", "pubDate", "description", "category", "comments"),
        *("enclosure", "id", "updated", "published", "summary", "content"),
        *("content:encoded", "dc:creator", "dc:date", "dc:subject", "dc:title"),
    ]
)
_NAMES: Final = _CONTAINERS | _TEXTS | {"author", "url"}


def end_opaque(text: str) -> str:
    """End CDATA sections and comments that have no end but whose parent element has
    one.
    """
    for _ in range(_MOST_ENDED):
        opening = _first_without_end(text)
        mended = _ended(text, opening) if opening else text
        if mended is text:
            break
        text = mended
    return text


def _first_without_end(text: str) -> re.Match[str] | None:
    at = 0
    while opening := _OPAQUE_BEGINS.search(text, at):
        at = text.find(_END_OF[opening[0]], opening.end())
        if at < 0:
            return opening
    return None


def _ended(text: str, opening: re.Match[str]) -> str:
    """End a section with its element; remove a comment, but not what follows its
    tag.
    """
    start, inside = opening.span()
    if opening[0] == "<!--":
        tag_end = text.find(">", inside)
        entry = _ENTRY_TAG.search(text, inside)
        if entry is None:
            return text
        end = tag_end + 1 if 0 <= tag_end < entry.start() else entry.start()
        return text[:start] + text[end:]
    around = _AROUND.search(text, max(0, start - _LONGEST_TAG), start)
    end = text.find(f"</{around[1]}>", inside) if around else -1
    if end < 0:
        return text
    last = _ALMOST_AN_END.search(text, max(inside, end - 8), end)
    closed = last.start() if last else end
    return f"{text[:closed]}]]>{text[end:]}"


def close_texts(text: str) -> str:
    """Insert missing end tags before the next part of the entry."""
    tags = [tag for tag in _XML_TOKEN.finditer(text) if tag["name"] in _NAMES]
    parts: list[str] = []
    copied = 0
    for beginning, end in _missing_ends(tags):
        start = _wrong_end(text, beginning.end(), end)
        parts += text[copied:start], f"</{beginning['name']}>"
        copied = end
    parts.append(text[copied:])
    return "".join(parts)


def _missing_ends(tags: list[re.Match[str]]) -> Iterator[tuple[re.Match[str], int]]:
    """Start tags without an end tag, each with the position where the next part
    begins.
    """
    number = 0
    while number < len(tags):
        tag, number = tags[number], number + 1
        if tag["end"] or tag["empty"] or tag["name"] not in _TEXTS:
            continue
        end = _own_end(tags, number, tag["name"])
        if end is not None:
            number = end + 1
        elif number < len(tags):
            yield tag, tags[number].start()


def _wrong_end(text: str, start: int, end: int) -> int:
    """Where a misspelt end tag begins, if there is one just before ``end``; else
    ``end``.
    """
    found = _LAST_END.search(text, max(start, end - _LONGEST_TAG), end)
    is_wrong = found is not None and f"<{found[1]}" not in text[start:end]
    return found.start() if found and is_wrong else end


def _own_end(tags: list[re.Match[str]], first: int, name: str) -> int | None:
    """The index of the tag's own end tag; None if the same entry has none."""
    for number in range(first, len(tags)):
        tag = tags[number]
        if tag["name"] == name:
            return number if tag["end"] else None
        if tag["name"] in _CONTAINERS:
            return None
    return None


# Strings come first: what is in them is neither a comment nor a comma. No part is tried
# in a second way, and what is not closed extends to the end; otherwise it would take
# quadratic time. Text that needs no repair is skipped in one match, as is the same
# fault repeated: each match takes a microsecond, and there may be millions of them.
_SOUND: Final = r'[^"\\\x00-\x1f]*+'
_JSON_TOKEN: Final = re.compile(
    rf'(?P<sound>(?:"{_SOUND}(?:\\["\\/bfnrt]{_SOUND})*+"'
    r'|[^"/,NIu-]++|,\s*+(?=[\[{"]))++)'
    r'|(?P<string>"(?:[^"\\]|\\.)*+(?:"|\\?\Z))'
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<comma>,(?=(?:\s|//[^\n]*+\n|(?>/\*.*?\*/))*+[}\]]))"
    r"|(?P<number>\b(?:NaN|undefined)\b|-?\bInfinity\b)",
    re.DOTALL,
)
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_BACKSLASHES: Final = re.compile(
    rf"(?P<sound>(?:\\(?:[\"\\/bfnrt]|{_PAIR}|u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}))++)"
    r"|(?P<half>\\u[0-9a-fA-F]{4})"
    r"|(?P<wrong>(?:\\[^u\"\\/bfnrt][^\\]*+)++|\\.)",
    re.DOTALL,
)
_JSON_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x20)}
_PROBLEM: Final = "JSON was repaired: control characters, commas, comments or escapes"


def repair_json(document: OpenedDocument) -> OpenedDocument:
    """Repair a document in UTF-8; returned unchanged if there is nothing to repair.

    Repairs raw line breaks and wrong escapes in strings, commas before a closing
    bracket, comments, and ``NaN``, ``undefined`` and ``Infinity``.
    """
    text = document.body.decode()
    mended = _JSON_TOKEN.sub(_as_json, text)
    if mended == text:
        return document
    return document.repaired(mended.encode(), Repair(name="json", problem=_PROBLEM))


def _as_json(match: re.Match[str]) -> str:
    if match["sound"]:
        return match[0]
    if match["string"]:
        return _BACKSLASHES.sub(_escaped, match["string"]).translate(_JSON_CONTROLS)
    if match["comment"]:
        return "\n" * match["comment"].count("\n")
    return "null" if match["number"] else ""


def _escaped(match: re.Match[str]) -> str:
    if match["half"]:  # half a surrogate pair
        return "\\ufffd"
    return match["sound"] or match["wrong"].replace("\\", "")


_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_HAS_NO_CONTROLS: Final = re.compile(  # in half the time
    "[ -\ufffd\t\n\r\U00010000-\U0010ffff]*+"
).fullmatch
_OPAQUE: Final = re.compile(rf"(<(?:{_AFTER_BRACKET}))")
_AMPERSANDS: Final = re.compile(
    r"&(?!(?:amp|lt|gt|quot|apos);)(?:#[xX](?P<hex>[0-9a-fA-F]{1,8});|#(?P<number>[0-9]{1,8});"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]{0,31});)?"
)


def _attribute(name: str, value: str) -> str:
    return rf"\s+{name}\s*=\s*(?:\"{value}\"|'{value}')"


_SOUND_DECLARATION: Final = re.compile(
    r"<\?xml"
    + _attribute("version", r"1\.\d+")
    + f"(?:{_attribute('encoding', '[A-Za-z][A-Za-z0-9._-]*')})?"
    + f"(?:{_attribute('standalone', '(?:yes|no)')})?"
    + r"\s*\?>(?!\s*<\?xml\s)"
)
_DECLARATIONS: Final = re.compile(
    r"(?:<\?\s{0,20}xml(?![\w:.-])[^<>]{0,400}>\s*)+", re.IGNORECASE
)
_INNER_DECLARATION: Final = re.compile(
    rf"{_OPAQUE.pattern}|<\?xml(?![\w:.-])[^<>]{{0,400}}\?>", re.DOTALL
)
# A bracket that begins no tag, and unescaped HTML elements that need no end tag.
_HTML: Final = re.compile(
    rf"<(?:{_AFTER_BRACKET}|(?<=.<)(?![^\W\d]|[:/!?])"
    r"|(?P<name>br|hr|wbr|img(?=\s))(?:\s[^<>]*)?(?<!/)>(?!\s{0,20}</(?P=name)))",
    re.DOTALL | re.IGNORECASE,
)
_NAMESPACE: Final = re.compile(
    r"(xmlns(?<=\sxmlns)(?::[\w.-]{1,40})?\s{0,20}=\s{0,20})(\"[^\"<>]*\"|'[^'<>]*')"
)
_IN_TAG: Final = re.compile(r"<([A-Za-z_][\w.-]{0,40}):")
_COLON: Final = re.compile(r":(?=\w)")
_BEFORE_COLON: Final = re.compile(r"\s([A-Za-z_][\w.-]{0,40})\Z")
_LONGEST_PREFIX: Final = 42
_DECLARED: Final = re.compile(r"xmlns:(?<=\sxmlns:)([A-Za-z_][\w.-]{0,40})\s*=")
_ROOT: Final = re.compile(r"<[A-Za-z_][^\s<>/]*")
_MARKS: Final = re.compile(
    rf"<(?:{_AFTER_BRACKET}"
    r"|/(?:[\w.-]{1,40}:)?(?P<end>rss|feed|rdf|channel)\s{0,20}>"
    r"|(?:[\w.-]{1,40}:)?(?P<entry>item|entry)[\s>])",
    re.IGNORECASE,
)
_MOST_PREFIXES: Final = 50


def repair(document: OpenedDocument) -> OpenedDocument:
    """Make every repair that changes something; returned unchanged if none does."""
    text, repairs = _decode(document)
    for name, problem, mend in _STEPS:
        mended = mend(text)
        if mended != text:
            line = _line_of_difference(text, mended) + document.lines_before
            repairs.append(Repair(name=name, problem=f"line {line}: {problem}"))
            text = mended
    if not repairs:
        return document
    return document.repaired(text.encode(), *repairs)


def repair_encoding(document: OpenedDocument) -> OpenedDocument:
    """Re-encode a JSON document in UTF-8; returned unchanged if it is UTF-8 already."""
    text, repairs = _decode(document)
    return document.repaired(text.encode(), *repairs) if repairs else document


def _decode(document: OpenedDocument) -> tuple[str, list[Repair]]:
    body = document.body
    try:
        return body.decode(), []
    except UnicodeDecodeError as error:
        text, codec = mend_utf8(body)
        name = codec.replace("cp125", "Windows-125")
        line = document.lines_before + body.count(b"\n", 0, error.start) + 1
        problem = f"line {line}: {error.reason} at byte {error.start}: read as {name}"
        return text, [Repair(name="bytes", problem=problem)]


def _with_sound_declaration(text: str) -> str:
    """Remove XML declarations that are malformed or not the only one.

    The text is UTF-8 and XML 1.0 by now, so nothing is lost.
    """
    if not _SOUND_DECLARATION.match(text):
        declarations = _DECLARATIONS.match(text)
        text = text[declarations.end() :] if declarations else text
    if text.find("<?xml", 1) < 0:
        return text
    return text[:1] + _INNER_DECLARATION.sub(_without_declaration, text[1:])


def _without_declaration(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("<!") else ""


def _with_sound_namespaces(text: str) -> str:
    """Remove white space in namespace URIs, in which lines were broken."""
    return _NAMESPACE.sub(lambda found: found[1] + "".join(found[2].split()), text)


def _line_of_difference(text: str, mended: str) -> int:
    """The number of the first line that differs."""
    same, different = 0, min(len(text), len(mended)) + 1
    while different - same > 1:
        middle = (same + different) // 2
        if text.startswith(mended[same:middle], same):
            same = middle
        else:
            different = middle
    return text.count("\n", 0, same) + 1


def _without_controls(text: str) -> str:
    return text if _HAS_NO_CONTROLS(text) else _CONTROLS.sub("", text)


def _with_numeric_entities(text: str) -> str:
    """Replace HTML's named entities, escape bare ampersands, and drop bad numbers."""
    parts = _OPAQUE.split(text)
    parts[::2] = [_AMPERSANDS.sub(_reference, part) for part in parts[::2]]
    return "".join(parts)


def _reference(match: re.Match[str]) -> str:
    if match["name"]:
        characters = html5.get(f"{match['name']};", "")
        return (
            "".join(f"&#{ord(each)};" for each in characters)
            or f"&amp;{match['name']};"
        )
    if match["hex"] or match["number"]:
        code = int(match["hex"], 16) if match["hex"] else int(match["number"])
        return f"&#{code};" if _is_xml_character(code) else ""
    return "&amp;"


def _with_xml_of_html(text: str) -> str:
    return _HTML.sub(_as_xml, text)


def _as_xml(match: re.Match[str]) -> str:
    if match["name"]:
        return f"{match[0][:-1]}/>"
    return "&lt;" if match[0] == "<" else match[0]


def _is_xml_character(code: int) -> bool:
    """Whether XML 1.0 §2.2 (production 2) allows the character."""
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _with_declared_prefixes(text: str) -> str:
    """Declare prefixes that are used undeclared, by their usual namespaces."""
    root = _ROOT.search(text)
    missing = _undeclared(text)[:_MOST_PREFIXES]
    if root is None or not missing:
        return text
    declarations = "".join(
        f' xmlns:{prefix}="{NAMESPACES.get(prefix, (f"urn:undeclared:{prefix}",))[0]}"'
        for prefix in missing
    )
    return text[: root.end()] + declarations + text[root.end() :]


def _undeclared(text: str) -> list[str]:
    """Undeclared prefixes of elements and possible attributes, in the order of the
    text.
    """
    known = {"xml", "xmlns", *_DECLARED.findall(text)}
    places: dict[str, int] = {}
    for prefix in chain(_IN_TAG.finditer(text), _before_colons(text)):
        if prefix[1] not in known:
            place = places.setdefault(prefix[1], prefix.start())
            places[prefix[1]] = min(place, prefix.start())
    return sorted(places, key=places.__getitem__)


def _before_colons(text: str) -> Iterator[re.Match[str]]:
    for colon in _COLON.finditer(text):
        at = colon.start()
        prefix = _BEFORE_COLON.search(text, max(0, at - _LONGEST_PREFIX), at)
        if prefix:
            yield prefix


def _without_trailer(text: str) -> str:
    """Remove what follows the root element, often scripts and counters.

    If entries follow, that was not the end: those of RDF come after the channel.
    """
    end = 0
    for mark in _MARKS.finditer(text):
        if mark["end"]:
            end = mark.end()
        elif mark["entry"]:
            end = 0
    return text[:end] if end and text[end:].strip() else text


_STEPS: Final = (
    (
        "declaration",
        "an invalid XML declaration was dropped",
        _with_sound_declaration,
    ),
    ("characters", "control characters were dropped", _without_controls),
    ("sections", "an unfinished section or comment was closed", end_opaque),
    (
        "entities",
        "entities unknown to XML were replaced",
        _with_numeric_entities,
    ),
    ("html", "unescaped HTML was closed", _with_xml_of_html),
    ("tags", "missing end tags were added", close_texts),
    (
        "namespaces",
        "white space in namespace names was dropped",
        _with_sound_namespaces,
    ),
    ("prefixes", "undeclared prefixes were declared", _with_declared_prefixes),
    ("trailer", "text after the end of the document was dropped", _without_trailer),
)
