"""Lists of feeds as OPML 2.0, such as ``/myPublicFeeds.opml``.

That name and its use were proposed in 2003 and withdrawn; files in this form are read
by whatever imports subscriptions. Only the writing is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from itertools import takewhile
from typing import Final

from protocols.outlines import SLASH_IN_NAME
from protocols.safe_urls import is_safe_page
from protocols.superfeedr.xml import XmlWriter

OPML_TYPE: Final = "text/x-opml; charset=utf-8"

_HEAD: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n<head>'


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOutline:
    """One feed of the list; ``html_url`` is its site's, "" if that is not known.

    ``section`` is its folders' names with slashes between them, "" for none; a slash
    in a name is `protocols.outlines.SLASH_IN_NAME` there.
    """

    title: str
    description: str
    xml_url: str
    html_url: str = ""
    section: str = ""


def render_opml(
    title: str, outlines: Sequence[FeedOutline], modified: datetime | None
) -> bytes:
    """Feeds without a section come first, as the proposal has them, then a folder for
    each section, by name. Texts are never empty: the title stands in for a missing
    description, the URL for a missing title. What leads nowhere safe is left out.
    """
    writer = XmlWriter()
    writer.put(_HEAD)
    writer.put_element(b"title", title)
    if modified is not None:
        writer.put_element(b"dateModified", format_datetime(modified, usegmt=True))
    writer.put(b"</head>\n<body>\n")
    safe = [each for each in outlines if is_safe_page(each.xml_url)]
    opened: tuple[str, ...] = ()
    for outline in sorted(safe, key=_folders):
        opened = _change_folder(writer, opened, _folders(outline))
        _put_outline(writer, outline)
    _change_folder(writer, opened, ())
    writer.put(b"</body>\n</opml>\n")
    return writer.finish()


def _folders(outline: FeedOutline) -> tuple[str, ...]:
    names = filter(None, map(str.strip, outline.section.split("/")))
    return tuple(name.replace(SLASH_IN_NAME, "/") for name in names)


def _change_folder(
    writer: XmlWriter, opened: tuple[str, ...], wanted: tuple[str, ...]
) -> tuple[str, ...]:
    """Close what is not wanted any more, and open what is; ``wanted``."""
    shared = sum(1 for _ in takewhile(_are_equal, zip(opened, wanted, strict=False)))
    for _ in opened[shared:]:
        writer.put(b"</outline>\n")
    for name in wanted[shared:]:
        writer.parts += (b'<outline text="', name, b'" title="', name)
        writer.put(b'">\n')
    return wanted


def _are_equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _put_outline(writer: XmlWriter, outline: FeedOutline) -> None:
    """``type`` is rss whatever the format of the feed is: the proposal has it so."""
    title = outline.title.strip() or outline.xml_url
    writer.parts += (b'<outline type="rss" text="', title, b'" title="', title)
    description = outline.description.strip() or title
    writer.parts += (b'" description="', description)
    writer.parts += (b'" xmlUrl="', outline.xml_url)
    if is_safe_page(outline.html_url):
        writer.parts += (b'" htmlUrl="', outline.html_url)
    writer.put(b'"/>\n')
