"""Turn HTML into content blocks (SCP, "Content Block Types").

Only the ten types of the specification, and only the members it names: readers drop a
whole page because of any other. Links and images in a text follow the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from lxml import etree

from protocols.enclosures import type_of_file
from protocols.languages import reduce_language
from protocols.scp.collection import page_address

INLINE: Final = frozenset(
    {
        *("abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del"),
        *("dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "math", "meter"),
        *("output", "progress", "q", "rp", "rt", "ruby", "s", "samp", "small", "span"),
        *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    }
)
"""Elements that do not end a text."""
DROPPED: Final = frozenset(
    {
        *("applet", "base", "button", "canvas", "command", "dialog", "embed", "frame"),
        *("frameset", "head", "iframe", "input", "link", "map", "meta", "noembed"),
        *("noframes", "noscript", "object", "option", "param", "script", "select"),
        *("style", "svg", "template", "textarea", "title"),
    }
)
"""Elements that are left out with everything inside."""

_HIDING: Final = "display:none|visibility:hidden"
_UNSEEN: Final = re.compile(
    rf"(?:^|;)(?:{_HIDING}|(?:width|height):[01](?:px)?)(?:;|!|$)", re.IGNORECASE
)
_HIDDEN: Final = re.compile(rf"(?:^|;)(?:{_HIDING})(?:;|!|$)", re.IGNORECASE)
_Moved: TypeAlias = dict[tuple[Any, bool], list[str]]
"""Text to add to an element's own text (True), or to its tail (False)."""


def is_hidden(element: Any) -> bool:
    """Whether an element is invisible, by its attribute or its own style.

    ``hidden="until-found"`` can be found by searching, so it is content (HTML, "The
    hidden attribute").
    """
    hidden = element.get("hidden")
    if hidden is not None and hidden.strip().lower() != "until-found":
        return True
    style = element.get("style")
    return bool(style) and bool(_HIDDEN.search("".join(style.split())))


def take_out(elements: Iterable[Any]) -> None:
    """Remove elements, none of them the root, from their tree; the text after them
    stays.

    Their tails are collected first: joining those of a long run one by one would take
    quadratic time.
    """
    moved: _Moved = {}
    for element in elements:
        parent = element.getparent()
        if tail := element.tail:
            before = element.getprevious()
            place = (parent, True) if before is None else (before, False)
            moved.setdefault(place, []).append(tail)
        parent.remove(element)
    for (place, is_inside), texts in moved.items():
        if is_inside:
            place.text = "".join((place.text or "", *texts))
        else:
            place.tail = "".join((place.tail or "", *texts))


def is_pixel(image: Any) -> bool:
    """Whether an image is too small to see, or hidden: it only counts readers."""
    if any(
        (image.get(side) or "").strip().removesuffix("px") in ("0", "1")
        for side in ("width", "height")
    ):
        return True
    style = image.get("style")
    return bool(style) and bool(_UNSEEN.search("".join(style.split())))


Block: TypeAlias = dict[str, Any]
"""A block as a JSON object."""
Prune: TypeAlias = Callable[[Any], None]
"""Removes elements from a tree of HTML."""

LARGEST_MARKUP: Final = 1024 * 1024
"""Characters of an entry's content that are read; the rest is left out."""
MOST_BLOCKS: Final = 1_000
"""Per page (SCP, "Resource Limits"); the rest becomes one text."""
DEEPEST: Final = 150
"""Levels of nested elements; deeper ones are left out."""

# Shared by all threads in turn: making a parser takes half as long as reading a post.
_PARSER: Final = etree.HTMLParser(
    encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
)
_BREAK: Final = "\u2028"
"""Stands for ``<br>`` until white space is collapsed."""
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|brush:\s*)([\w+#.-]+)"
)
_MAY_HIDE: Final = re.compile(rb"hidden|display", re.IGNORECASE)
_TEXTS: Final = {"text": "text", "heading": "text", "quote": "text", "code": "code"}
_DASHES: Final = " \t\r\n\f\u00a0-~\u2010\u2011\u2012\u2013\u2014\u2015\u2028"
"""Characters that may separate a quotation from its source."""
_CAPTIONS: Final = frozenset({"captions", "subtitles"})
_PIXELS: Final = re.compile("[0-9]{1,6}")
_MEDIA_TYPES: Final = {"audio": "audio/mpeg", "video": "video/mp4"}


def blocks_of_html(markup: str, prune: Prune | None = None) -> list[Block]:
    """The blocks of HTML in the order of the document; none if it has no content.

    ``prune`` removes what must not be read from the tree first.
    """
    data = markup[:LARGEST_MARKUP].encode("utf-8", "ignore").replace(b"\0", b"")
    if b"<" not in data and b"&" not in data:
        return blocks_of_text(data.decode())
    # Wrapped in an element, so that there is always a root.
    root = etree.fromstring(b"<div>" + data + b"</div>", _PARSER)
    if _MAY_HIDE.search(data):
        take_out(each for each in list(root.iter("*")) if is_hidden(each))
    if prune is not None:
        prune(root)
    walk = _Walk()
    walk.block(root, 0)
    return walk.blocks


def blocks_of_text(text: str) -> list[Block]:
    """The blocks of plain text: one for each paragraph."""
    paragraphs = (_collapse(each) for each in re.split(r"\n\s*\n", text))
    return [{"type": "text", "text": each} for each in paragraphs if each]


def limit_blocks(blocks: list[Block]) -> list[Block]:
    """Merge the blocks beyond a page's limit into one text at its end."""
    if len(blocks) <= MOST_BLOCKS:
        return blocks
    kept = blocks[: MOST_BLOCKS - 1]
    rest = "\n\n".join(filter(None, map(text_of_block, blocks[MOST_BLOCKS - 1 :])))
    return [*kept, {"type": "text", "text": rest}] if rest else kept


def text_of_block(block: Block) -> str:
    """The words of a block; "" for pictures and media."""
    kind = block["type"]
    if kind in _TEXTS:
        return str(block[_TEXTS[kind]])
    if kind == "list":
        return "\n".join(block["items"])
    if kind == "table":
        return "\n".join(" ".join(row) for row in block["rows"])
    return ""


def captions_block(url: str, language: str, label: str) -> Block:
    """Captions for a video block, with the three members that are required."""
    language = reduce_language(language) or "und"
    return {"language": language, "url": url, "label": label or language}


def _collapse(text: str) -> str:
    if "  " not in text and text.isprintable():  # there are only single spaces
        return text.strip()
    if _BREAK not in text:
        return " ".join(text.split())
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return "\n".join(lines).strip()


class _Walk:
    """Walks through the elements, and collects text until its block ends."""

    __slots__ = ("_following", "_seen", "_text", "blocks")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._text: list[str] = []
        self._following: list[Block] = []  # links and images that follow the text
        self._seen: set[str] = set()  # URLs that have been linked

    def block(self, element: Any, depth: int) -> None:
        if self._text or self._following:
            self.flush()
        self._inside(element, depth)
        if self._text or self._following:
            self.flush()

    def flush(self) -> None:
        """Make the collected text a block, followed by its links and images."""
        if gathered := self._text:
            said = "".join(gathered) if len(gathered) > 1 else gathered[0]
            if text := _collapse(said):
                self.blocks.append({"type": "text", "text": text})
            gathered.clear()
        if self._following:
            self.blocks += self._following
            self._following = []

    def _inside(self, element: Any, depth: int) -> None:
        gather = self._text.append
        if text := element.text:
            gather(text)
        if depth >= DEEPEST:
            return
        # Most of the time is spent here: the most frequent elements come first, and
        # nothing is called for a leaf.
        for child in element:
            tag = child.tag
            if tag in INLINE:
                if len(child):
                    self._inside(child, depth + 1)
                elif text := child.text:
                    gather(text)
            elif read := _READERS.get(tag):
                read(self, child, depth + 1)
            elif isinstance(tag, str) and tag not in DROPPED:
                self.block(child, depth + 1)
            if tail := child.tail:
                gather(tail)

    def _apart(self, element: Any, depth: int) -> tuple[list[Block], list[Block]]:
        """The element's content as separate blocks: those of text, and the others."""
        outer = self.blocks, self._text, self._following
        self.blocks, self._text, self._following = [], [], []
        self.block(element, depth)
        inner = self.blocks
        self.blocks, self._text, self._following = outer
        others = [each for each in inner if each["type"] not in _TEXTS]
        return [each for each in inner if each["type"] in _TEXTS], others

    # --- one for each kind of element ---

    def break_line(self, element: Any, depth: int) -> None:
        self._text.append(_BREAK)

    def link(self, element: Any, depth: int) -> None:
        if len(element):
            begin = len(self._text)
            self._inside(element, depth)
            said = "".join(self._text[begin:])
        elif said := element.text or "":
            self._text.append(said)
        url = page_address(element.get("href") or "")
        if not url or url in self._seen:
            return
        if not (text := " ".join(said.replace(_BREAK, " ").split())):
            return
        self._seen.add(url)
        block: Block = {"type": "link", "url": url, "text": text}
        if rel := (element.get("rel") or "").split():
            block["rel"] = rel
        self._following.append(block)

    def image(self, element: Any, depth: int) -> None:
        url = page_address(element.get("src") or "")
        if url and not is_pixel(element):
            alt = _collapse(element.get("alt") or "")
            self._following.append({"type": "image", "url": url, "alt": alt})

    def heading(self, element: Any, depth: int) -> None:
        self.flush()
        texts, others = self._apart(element, depth)
        if text := " ".join(text_of_block(each) for each in texts):
            level = int(element.tag[1])
            self.blocks.append({"type": "heading", "level": level, "text": text})
        self.blocks += others

    def listing(self, element: Any, depth: int) -> None:
        self.flush()
        items: list[str] = []
        following: list[Block] = []
        for child in element:
            if isinstance(child.tag, str) and child.tag not in DROPPED:
                self._put_item(child, depth + 1, items, following)
        if items:
            ordered = element.tag == "ol"
            self.blocks.append({"type": "list", "ordered": ordered, "items": items})
        self.blocks += following

    def _put_item(
        self, element: Any, depth: int, items: list[str], following: list[Block]
    ) -> None:
        """Add an item, then those of the lists inside it."""
        if depth >= DEEPEST:
            return
        if not len(element):  # most items
            if text := _collapse(element.text or ""):
                items.append(text)
            return
        texts, others = self._apart(element, depth)
        if text := "\n".join(text_of_block(each) for each in texts):
            items.append(text)
        for other in others:
            if other["type"] == "list":
                items += other["items"]
            else:
                following.append(other)

    def code(self, element: Any, depth: int) -> None:
        self.flush()
        code = "".join(element.itertext()).strip("\r\n")
        if not code.strip():
            return
        block: Block = {"type": "code", "code": code}
        classes = [element.get("class") or ""]
        classes += [each.get("class") or "" for each in element.iterchildren("code")]
        if found := _LANGUAGE.search(" ".join(classes)):
            block = {"type": "code", "language": found[1], "code": code}
        self.blocks.append(block)

    def quote(self, element: Any, depth: int) -> None:
        self.flush()
        citation = page_address(element.get("cite") or "")
        attribution = _attribution(element)
        if attribution is not None:
            words = "".join(attribution.itertext())
            citation = _collapse(words).lstrip(_DASHES) or citation
            take_out([attribution])
        texts, others = self._apart(element, depth)
        text = "\n\n".join(text_of_block(each) for each in texts)
        if attribution is not None:
            text = text.rstrip(_DASHES)
        if text:
            block: Block = {"type": "quote", "text": text}
            if citation:
                block["citation"] = citation
            self.blocks.append(block)
        self.blocks += others

    def table(self, element: Any, depth: int) -> None:
        """Read a table. With a single column or a table inside it is only a layout."""
        rows = list(element.iter("tr"))
        cells = [[each for each in row if each.tag in ("td", "th")] for row in rows]
        is_layout = next(element.iterdescendants("table"), None) is not None
        if is_layout or max(map(len, cells), default=0) < 2:
            self.block(element, depth)
            return
        self.flush()
        following: list[Block] = []
        found = [[self._cell(each, depth, following) for each in row] for row in cells]
        self.blocks.append({"type": "table", "rows": [row for row in found if row]})
        self.blocks += following

    def _cell(self, element: Any, depth: int, following: list[Block]) -> str:
        texts, others = self._apart(element, depth)
        following += [each for each in others if each["type"] != "list"]
        parts = [*texts, *(each for each in others if each["type"] == "list")]
        return "\n".join(text_of_block(each) for each in parts)

    def media(self, element: Any, depth: int) -> None:
        """Read audio or video. Media without a title get the page's name later."""
        kind = element.tag
        urls: dict[str, Block] = {}
        # An unclosed source becomes the parent of the next one.
        for each in [element, *element.iter("source")]:
            written = each.get("src") or ""
            if url := page_address(written):
                type = type_of_file(each.get("type") or "", written)
                of_kind = type or _MEDIA_TYPES[kind]
                urls.setdefault(url, {"href": url, "mediaType": of_kind})
        if not urls:
            return
        name = element.get("title") or element.get("aria-label") or ""
        block: Block = {"type": kind, "name": _collapse(name)}
        block["url"] = list(urls.values())
        if kind == "video":
            block |= _picture(element)
        self._following.append(block)


def _attribution(quote: Any) -> Any:
    """The element with which a quotation names its source; None if there is none.

    That is a ``cite`` at the end, or the line or footer that contains it.
    """
    element = quote
    while (element := _last_inside(element)) is not None:
        if element.tag == "footer" and next(element.iter("cite"), None) is not None:
            return element
        if element.tag == "cite":
            parent = element.getparent()
            stands_alone = len(parent) == 1 and not (parent.text or "").strip(_DASHES)
            return parent if stands_alone and parent is not quote else element
        if element.tag == "blockquote":
            return None
    return None


def _last_inside(element: Any) -> Any:
    """The last element inside that is not empty, unless text follows it."""
    child = element[-1] if len(element) else None
    while child is not None:
        if (child.tail or "").strip(_DASHES):
            return None
        if len(child) or (child.text or "").strip():
            return child
        child = child.getprevious()
    return None


def _picture(video: Any) -> Block:
    """The video's size, poster and captions."""
    block: Block = {}
    for side in ("width", "height"):
        written = (video.get(side) or "").strip()
        if _PIXELS.fullmatch(written):
            block[side] = int(written)
    if poster := page_address(video.get("poster") or ""):
        block["icon"] = {"type": "Image", "url": poster}
    captions = [
        captions_block(
            url, track.get("srclang") or "", _collapse(track.get("label") or "")
        )
        for track in video.iter("track")
        # "The attribute's missing value default is the subtitles state" (HTML).
        if (track.get("kind") or "subtitles").strip().lower() in _CAPTIONS
        and (url := page_address(track.get("src") or ""))
    ]
    if captions:
        block["captions"] = captions
    return block


_READERS: Final = {
    "a": _Walk.link,
    "audio": _Walk.media,
    "blockquote": _Walk.quote,
    "br": _Walk.break_line,
    "img": _Walk.image,
    "ol": _Walk.listing,
    "pre": _Walk.code,
    "table": _Walk.table,
    "ul": _Walk.listing,
    "video": _Walk.media,
    **{f"h{level}": _Walk.heading for level in range(1, 7)},
}
