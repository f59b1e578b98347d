"""What RFC 4287 requires of a document ("MUST"), checked; and nothing else.

`faults` names each breach with its section.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tests.support.golden import LANGUAGE, read_xml

ATOM = "{http://www.w3.org/2005/Atom}"
DIV = "{http://www.w3.org/1999/xhtml}div"

IRI = re.compile('[^\x00-\x20"<>\\\\^`{|}\x7f-\xa0]*')
ESCAPES = re.compile("%(?![0-9A-Fa-f]{2})")
ABSOLUTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
RELATION = re.compile('[^\x00-\x20"<>\\\\^`{|}:/?#\\[\\]\x7f-\xa0]+')
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
MEDIA_TYPE = re.compile(r"[^\s/;]+/[^\s/;]+\s*(;.*)?")
EMAIL = re.compile(r".+@.+")
LANGUAGE_TAG = re.compile("[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")

FEED = {
    "id": (1, 1), "title": (1, 1), "updated": (1, 1), "generator": (0, 1),
    "icon": (0, 1), "logo": (0, 1), "rights": (0, 1), "subtitle": (0, 1),
    "author": (0, None), "category": (0, None), "contributor": (0, None),
    "link": (0, None), "entry": (0, None),
}  # fmt: skip
SOURCE = {name: (0, most) for name, (_, most) in FEED.items() if name != "entry"}
ENTRY = {
    "id": (1, 1), "title": (1, 1), "updated": (1, 1), "content": (0, 1),
    "published": (0, 1), "rights": (0, 1), "source": (0, 1), "summary": (0, 1),
    "author": (0, None), "category": (0, None), "contributor": (0, None),
    "link": (0, None),
}  # fmt: skip
PERSON = {"name": (1, 1), "uri": (0, 1), "email": (0, 1)}
TEXTS = ("title", "subtitle", "summary", "rights")
DATES = ("updated", "published")

Limits = dict[str, tuple[int, int | None]]


def faults(document: bytes) -> set[str]:
    """Raises `lxml.etree.XMLSyntaxError` for what is not even well-formed (2)."""
    root = read_xml(document)
    found = set(_languages(root))
    if root.tag != f"{ATOM}feed":
        return found | {"2 the root is no feed"}
    found |= {*_container(root, "4.1.1", FEED)}
    entries = root.findall(f"{ATOM}entry")
    has_author = root.find(f"{ATOM}author") is not None
    for entry in entries:
        found |= {*_entry(entry, has_author)}
    return found


def _entry(entry: Any, has_author: bool) -> Iterator[str]:
    yield from _container(entry, "4.1.2", ENTRY)
    source = entry.find(f"{ATOM}source")
    if source is not None:
        yield from _container(source, "4.2.11", SOURCE)
    own = entry.find(f"{ATOM}author") is not None
    inherited = source is not None and source.find(f"{ATOM}author") is not None
    if not (own or inherited or has_author):
        yield "4.1.2 an entry without an author"
    content = entry.find(f"{ATOM}content")
    if content is None:
        if not any(_rel(link) == "alternate" for link in entry.findall(f"{ATOM}link")):
            # 4.1.2: "atom:entry elements that contain no child atom:content element
            # MUST contain at least one atom:link element with [...] alternate"
            yield "4.1.2 neither content nor an alternate"
    else:
        yield from _content(content, entry)


def _container(element: Any, section: str, limits: Limits) -> Iterator[str]:
    yield from _counted(element, section, limits)
    alternates = Counter(
        (link.get("type"), link.get("hreflang"))
        for link in element.findall(f"{ATOM}link")
        if _rel(link) == "alternate"
    )
    if max(alternates.values(), default=0) > 1:
        yield f"{section} two alternates of one type"
    for child in element:
        name = str(child.tag).removeprefix(ATOM)
        if name in TEXTS:
            yield from _text(child)
        elif name in DATES:
            yield from _date(child)
        elif name in ("author", "contributor"):
            yield from _person(child)
        elif name == "link":
            yield from _link(child)
        elif name == "category" and child.get("term") is None:
            yield "4.2.2 a category without a term"
        elif name in ("icon", "logo") and not _is_reference(child.text or ""):
            yield f"4.2 {name} is no IRI"


def _counted(element: Any, section: str, limits: Limits) -> Iterator[str]:
    counts = Counter(
        child.tag.removeprefix(ATOM)
        for child in element
        if isinstance(child.tag, str) and child.tag.startswith(ATOM)
    )
    for name in counts.keys() - limits.keys():
        article = "an" if name[0] in "aeiou" else "a"
        what = "person" if limits is PERSON else section
        yield f"{section} a {what} has {article} {name}"
    for name, (least, most) in limits.items():
        if counts[name] < least:
            yield f"{section} no {name}"
        if most is not None and counts[name] > most:
            yield f"{section} more than {most} {name}"


def _text(element: Any) -> Iterator[str]:
    kind = element.get("type", "text")
    if kind not in ("text", "html", "xhtml"):
        yield "3.1.1 a type of text that is none"
    yield from _inside(element, kind)


def _inside(element: Any, kind: str) -> Iterator[str]:
    children = list(element)
    if kind != "xhtml":
        if children:
            yield "3.1.1 text with child elements"
    elif [child.tag for child in children] != [DIV] or (element.text or "").strip():
        yield "3.1.1.3 XHTML without its one div"


def _content(content: Any, entry: Any) -> Iterator[str]:
    kind = content.get("type", "text")
    lower = kind.lower()
    if kind in ("text", "html", "xhtml"):
        yield from _inside(content, kind)
    elif not MEDIA_TYPE.fullmatch(kind) or lower.startswith(("multipart/", "message/")):
        yield "4.1.3.1 a type of content that is none"
    elif lower.startswith("text/"):
        if len(content):
            yield "4.1.3.3 text/ with child elements"
    elif not re.search(r"[+/]xml\s*(;|$)", lower):
        try:
            b64decode("".join((content.text or "").split()), validate=True)
        except (binascii.Error, ValueError):
            yield "4.1.3.3 content that is no Base64"
        if entry.find(f"{ATOM}summary") is None:
            yield "4.1.2 Base64 without a summary"


def _date(element: Any) -> Iterator[str]:
    text = element.text or ""
    if not DATE.fullmatch(text):
        yield "3.3 a date that is none"
        return
    datetime.fromisoformat(text)


def _person(element: Any) -> Iterator[str]:
    yield from _counted(element, "3.2", PERSON)
    for uri in element.findall(f"{ATOM}uri"):
        if not _is_reference(uri.text or ""):
            yield "3.2.2 a person's uri is no IRI"
    for email in element.findall(f"{ATOM}email"):
        if not EMAIL.fullmatch(email.text or ""):
            yield "3.2.3 an email that is no address"


def _link(element: Any) -> Iterator[str]:
    if not _is_reference(element.get("href", " ")):
        yield "4.2.7.1 a href that is no IRI"
    rel = _rel(element)
    if not RELATION.fullmatch(rel) and not (ABSOLUTE.match(rel) and _is_reference(rel)):
        yield "4.2.7.2 a relation that is none"
    kind = element.get("type")
    if kind is not None and not MEDIA_TYPE.fullmatch(kind):
        yield "4.2.7.3 a media type that is none"


def _languages(root: Any) -> Iterator[str]:
    for element in root.iter():
        language = element.get(LANGUAGE)
        if language is not None and not LANGUAGE_TAG.fullmatch(language):
            yield "2 a language that is none"


def _rel(link: Any) -> str:
    return str(link.get("rel", "alternate"))


def _is_reference(text: str) -> bool:
    return bool(IRI.fullmatch(text)) and not ESCAPES.search(text)
