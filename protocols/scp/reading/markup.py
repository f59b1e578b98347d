"""Content blocks as HTML (SCP, "Content Block Types").

Whatever a block says is text, escaped, and addresses are those of the web only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any, Final

from protocols.scp.reading.collections import Warnings, page_url

_LANGUAGE_LENGTH: Final = 40
_PLAIN_URL: Final = re.compile("[^&<>\"']*").fullmatch
_DEFAULT_LEVEL: Final = 2

Block = dict[str, Any]


def html_of_blocks(
    blocks: list[Any], line: int, warnings: Warnings
) -> tuple[str, list[Any]]:
    """And the blocks of audio and video: what these have to show are their names, where
    they lead to a page; files are no part of the text. Blocks of unknown types are
    noted and passed over."""
    parts: list[str] = []
    media: list[Any] = []
    for number, block in enumerate(blocks):
        kind = block.get("type") if type(block) is dict else None
        write = _WRITERS.get(kind) if type(kind) is str else None
        if write is None:
            warnings.add(line, f"/content/{number}/type", "no known type; passed over")
            continue
        if write is _media:
            media.append(block)
        if written := write(block):
            parts.append(written)
        elif written is None:
            warnings.add(line, f"/content/{number}", "says nothing; passed over")
    return "\n".join(parts), media


def media_urls(block: Block) -> list[tuple[str, str]]:
    """Addresses with their media types, of an audio or video block."""
    listed = block.get("url")
    if type(listed) is str:
        url = page_url(listed)
        return [(url, "")] if url else []
    found = []
    for each in listed if type(listed) is list else ():
        if type(each) is dict and type(each.get("href")) is str:
            type_ = each.get("mediaType")
            if url := page_url(each["href"]):
                found.append((url, type_.strip() if type(type_) is str else ""))
    return found


def _shown(text: str) -> str:
    """As `html.escape` without quotes; most texts have nothing to be escaped."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text


def _attribute(url: str) -> str:
    is_plain = _PLAIN_URL(url) is not None
    return url if is_plain else escape(url)


def _text(block: Block) -> str | None:
    text = block.get("text")
    if type(text) is not str:
        return None
    return _paragraphs(text) if "\n" in text else f"<p>{_shown(text)}</p>"


def _paragraphs(text: str) -> str:
    written = _shown(text)
    if "\n" not in written:
        return f"<p>{written}</p>"
    paragraphs = (each.strip("\n") for each in written.split("\n\n"))
    return "\n".join(f"<p>{p.replace(chr(10), '<br>')}</p>" for p in paragraphs if p)


def _heading(block: Block) -> str | None:
    """SCP, "Non-Fatal Errors": "clamp to nearest valid value"."""
    text, level = block.get("text"), block.get("level")
    if type(text) is not str:
        return None
    if type(level) is not int:
        level = _DEFAULT_LEVEL
    level = min(max(level, 1), 6)
    return f"<h{level}>{_shown(text)}</h{level}>"


def _link(block: Block) -> str | None:
    text, url = block.get("text"), block.get("url")
    if type(text) is not str or type(url) is not str:
        return None
    if not (address := page_url(url)):
        return _paragraphs(text)
    relation = ""
    if type(rel := block.get("rel")) is list:
        words = [each for each in rel if type(each) is str]
        relation = f' rel="{escape(" ".join(words))}"' if words else ""
    shown = _shown(text)
    return f'<p><a href="{_attribute(address)}"{relation}>{shown}</a></p>'


def _image(block: Block) -> str | None:
    url, alt = block.get("url"), block.get("alt")
    address = page_url(url) if type(url) is str else ""
    if not address:
        return None
    shown = escape(alt) if type(alt) is str else ""
    return f'<p><img src="{escape(address)}" alt="{shown}"></p>'


def _list(block: Block) -> str | None:
    items = block.get("items")
    if type(items) is not list:
        return None
    tag = "ol" if block.get("ordered") is True else "ul"
    written = "".join(f"<li>{_cell(each)}</li>" for each in items)
    return f"<{tag}>{written}</{tag}>" if written else None


def _code(block: Block) -> str | None:
    code, language = block.get("code"), block.get("language")
    if type(code) is not str:
        return None
    named = ""
    if type(language) is str and language and " " not in language:
        named = f' class="language-{escape(language[:_LANGUAGE_LENGTH])}"'
    return f"<pre><code{named}>{_shown(code)}</code></pre>"


def _table(block: Block) -> str | None:
    rows = block.get("rows")
    if type(rows) is not list:
        return None
    written = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>"
        for row in rows
        if type(row) is list
    )
    return f"<table>{written}</table>" if written else None


def _cell(value: object) -> str:
    if type(value) is not str:
        return ""
    written = _shown(value)
    return written.replace("\n", "<br>") if "\n" in written else written


def _quote(block: Block) -> str | None:
    text, citation = block.get("text"), block.get("citation")
    if type(text) is not str:
        return None
    cite, words = "", ""
    if type(citation) is str and citation:
        address = page_url(citation)
        cite = f' cite="{escape(address)}"' if address else ""
        words = "" if address else f"<p><cite>{escape(citation)}</cite></p>"
    return f"<blockquote{cite}>{_paragraphs(text)}{words}</blockquote>"


def _media(block: Block) -> str | None:
    name, urls = block.get("name"), media_urls(block)
    if not urls:
        return None
    pages = [url for url, type_ in urls if type_.lower() == "text/html"]
    return "".join(
        f'<p><a href="{escape(url)}">'
        f"{escape(name if type(name) is str else url, quote=False)}</a></p>"
        for url in pages
    )


_WRITERS: Final[dict[str, Callable[[Block], str | None]]] = {
    "text": _text,
    "heading": _heading,
    "link": _link,
    "image": _image,
    "list": _list,
    "code": _code,
    "table": _table,
    "quote": _quote,
    "video": _media,
    "audio": _media,
}
