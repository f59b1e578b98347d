"""Write XML, and parse XML from untrusted sources safely.

Nothing is fetched or expanded. libxml2 bounds depth and text sizes itself (no
``huge_tree``). A document type must be refused or removed first, in the same encoding
that is parsed.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypedDict, cast


class Options(TypedDict):
    """Options of `lxml.etree.XMLParser` and `lxml.etree.iterparse`."""

    encoding: str
    no_network: bool
    resolve_entities: bool
    load_dtd: bool
    huge_tree: bool
    remove_comments: bool
    remove_pis: bool


SAFE: Final = Options(
    encoding="utf-8",
    no_network=True,
    resolve_entities=False,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


SHORT: Final = 160
"""Characters; a longer text may get a CDATA section of its own."""

Parts: TypeAlias = list[bytes | str]
"""Markup and text in turn."""

_CONTROLS = bytes(sorted({*range(0x20)} - {*b"\t\n\r"}))
_NONCHARACTERS = ("\ufffe", "\uffff")
_REFERENCES = (
    (b"&", b"&amp;"),
    (b"<", b"&lt;"),
    (b">", b"&gt;"),
    (b"\r", b"&#13;"),  # would be read as a line feed
    (b'"', b"&quot;"),
    (b"\n", b"&#10;"),  # in an attribute it would be read as a blank, as would a tab
    (b"\t", b"&#9;"),
)
_BETWEEN_TAGS = _REFERENCES[:4]


def changing(characters: bytes) -> bytes:
    """A table for `bytes.translate` that changes these characters and no others."""
    table = bytearray(range(256))
    for each in characters:
        table[each] = 0 if each else 1
    return bytes(table)


_CHANGING_CONTROLS = changing(_CONTROLS)
_CHANGING_OTHERS = changing(_CONTROLS[1:])


class XmlWriter:
    """Collects a document. ``parts`` are markup and text in turn, always in pairs.

    The short texts of a whole document are escaped together, as bytes, so that a
    document costs little more than its markup, however many texts it has.
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: Parts = []

    def put(self, markup: bytes) -> None:
        self.parts += (markup, "")

    def put_element(self, tag: bytes, text: str) -> None:
        """Add ``<tag>text</tag>``, or nothing if the text is empty."""
        if text:
            self.parts += (b"<%b>" % tag, text, b"</%b>" % tag, "")

    def put_text(self, opening: bytes, text: str, closing: bytes) -> None:
        """Add a text between tags. If it is long, its markup goes into CDATA."""
        if len(text) <= SHORT:
            self.parts += (opening, text, closing, "")
        else:
            data = _character_data(clean(text))
            self.parts += (opening, "", data, "", closing, "")

    def finish(self) -> bytes:
        """The whole document in UTF-8. Must be called only once."""
        parts = self.parts
        if parts:
            parts[1::2] = _escaped(cast("list[str]", parts[1::2]))
        return b"".join(cast("list[bytes]", parts))


def attribute(text: str) -> bytes:
    """One escaped text, for markup that is made once and used often."""
    return _escaped([text])[0]


def clean(text: str) -> bytes:
    """A text in UTF-8, without the characters that XML 1.0 forbids even as references.

    Bytes are searched many times faster than text, and no byte of a longer UTF-8
    sequence is a control character. The fastest check for them is `bytes.translate`,
    which returns the same object if nothing changes.
    """
    encoded = _encoded(text)
    if encoded.translate(_CHANGING_CONTROLS) is encoded:
        return encoded
    return encoded.translate(None, _CONTROLS)


def _encoded(text: str) -> bytes:
    for noncharacter in _NONCHARACTERS:
        if noncharacter in text:
            text = text.replace(noncharacter, "")
    return text.encode("utf-8", "ignore")  # lone surrogates are left out


def _escaped(texts: list[str]) -> list[bytes]:
    """Escape all texts at once, separated by NUL, which no text may contain."""
    joined = _encoded("\0".join(texts))
    has_nul = joined.count(b"\0") >= len(texts)
    if has_nul or joined.translate(_CHANGING_OTHERS) is not joined:
        joined = b"\0".join([clean(text) for text in texts])
    for character, reference in _REFERENCES:
        joined = joined.replace(character, reference)
    return joined.split(b"\0")


def _character_data(text: bytes) -> bytes:
    """Escape a long text. CDATA takes a tenth of the time, where it can be used."""
    if b"\r" in text or not (b"<" in text or b"&" in text):
        for character, reference in _BETWEEN_TAGS:
            text = text.replace(character, reference)
        return text
    if b"]" in text:
        text = text.replace(b"]]>", b"]]]]><![CDATA[>")
    return b"<![CDATA[%b]]>" % text
