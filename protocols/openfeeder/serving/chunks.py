"""The content of a page as chunks (OpenFeeder 3.2), out of its typed blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from protocols.model import Text
from protocols.openfeeder.serving.exclusions import is_boilerplate, prune
from protocols.scp.blocks import Block, blocks_of_html, blocks_of_text

MOST_CHUNKS: Final = 50
"""Of one page: more cannot be asked for, and the specification has no second page."""
_HTML: Final = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})


class ChunkType(StrEnum):
    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    CODE = "code"
    QUOTE = "quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """``id`` follows from what it says: it stays while others come and go."""

    id: str
    type: ChunkType
    text: str


_TYPES: Final = {
    "text": ChunkType.PARAGRAPH,
    "heading": ChunkType.HEADING,
    "list": ChunkType.LIST,
    "code": ChunkType.CODE,
    "quote": ChunkType.QUOTE,
    "table": ChunkType.PARAGRAPH,
}
_Said = tuple[ChunkType, str]


def chunks_of(text: Text | None) -> tuple[Chunk, ...]:
    """None for what is no text. Pictures and media have no words, and are left out."""
    said = [(_TYPES[each["type"]], _words(each)) for each in _blocks(text)]
    return _named(_merged([each for each in said if _is_content(each)]))


def chunks_of_words(words: str) -> tuple[Chunk, ...]:
    """One paragraph, where a page has nothing else to say; none of no words."""
    return _named([(ChunkType.PARAGRAPH, words)] if words else [])


def _blocks(text: Text | None) -> Iterable[Block]:
    if text is None:
        return []
    if text.type in _HTML:
        found = blocks_of_html(text.value, prune)
    elif text.type == "text" or text.type.lower().startswith("text/"):
        found = blocks_of_text(text.value)
    else:
        return []
    return (each for each in found if each["type"] in _TYPES)


def _words(block: Block) -> str:
    match block["type"]:
        case "list":
            items = [each for each in block["items"] if not is_boilerplate(each)]
            return "\n".join(f"- {each}" for each in items)
        case "table":
            return "\n".join(" | ".join(row) for row in block["rows"]).strip(" |\n")
        case "code":
            return str(block["code"])
        case "quote" if citation := block.get("citation"):
            return f"{block['text']}\n\u2014 {citation}"
    return str(block["text"])


def _is_content(said: _Said) -> bool:
    kind, text = said
    if kind is ChunkType.CODE:
        return True
    return bool(text.strip()) and not is_boilerplate(text)


def _merged(said: Sequence[_Said]) -> Sequence[_Said]:
    """Neighbours together, evenly, until there are few enough."""
    if len(said) <= MOST_CHUNKS:
        return said
    size = -(-len(said) // MOST_CHUNKS)
    return [
        _together(said[begin : begin + size]) for begin in range(0, len(said), size)
    ]


def _together(said: Sequence[_Said]) -> _Said:
    kinds = {kind for kind, _ in said}
    kind = kinds.pop() if len(kinds) == 1 else ChunkType.PARAGRAPH
    return kind, "\n\n".join(text for _, text in said)


def _named(said: Iterable[_Said]) -> tuple[Chunk, ...]:
    """What is said twice is told apart by its turn."""
    turns: Counter[str] = Counter()
    chunks = []
    for kind, text in said:
        digest = blake2b(f"{kind}\n{text}".encode(), digest_size=8).hexdigest()
        turns[digest] += 1
        name = digest if turns[digest] == 1 else f"{digest}-{turns[digest]}"
        chunks.append(Chunk(id=name, type=kind, text=text))
    return tuple(chunks)
