"""Entries whose content is safe to show in a page: the setting ``sanitize``.

Off by default: what feeds say is passed on as they say it. nh3 (ammonia) parses as
browsers do; hostile markup can make that take squared time and space, so that this
belongs into a worker process with limits.
"""

from __future__ import annotations

from html import escape
from typing import Final

import nh3
from msgspec.structs import replace

from protocols.model import ActivityObject, Entry, Text

LARGEST_GROWTH: Final = 2
"""Times its size that a text may have when it is clean; else its markup is shown."""

_MEDIA: Final = {"src", "preload", "loop", "muted", "width", "height"}
_TABLE: Final = {"align", "colspan", "rowspan", "headers", "scope"}
_ATTRIBUTES: Final = {
    "*": {"title", "lang", "dir"},
    "a": {"href", "hreflang", "type"},
    "audio": _MEDIA,
    "blockquote": {"cite"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
    "del": {"cite", "datetime"},
    "details": {"open"},
    "img": {"src", "srcset", "sizes", "alt", "width", "height", "align", "loading"},
    "ins": {"cite", "datetime"},
    "li": {"value"},
    "ol": {"start", "reversed", "type"},
    "q": {"cite"},
    "source": {"src", "srcset", "sizes", "type", "media"},
    "td": _TABLE,
    "th": _TABLE,
    "time": {"datetime"},
    "track": {"src", "kind", "srclang", "label", "default"},
    "video": _MEDIA | {"poster"},
}
_TAGS: Final = nh3.ALLOWED_TAGS | {
    *("address", "audio", "big", "main", "picture", "section", "source", "tfoot"),
    *("track", "video"),
}
_DROPPED_WHOLE: Final = {
    *("iframe", "noembed", "noframes", "noscript", "script", "select", "style"),
    *("template", "textarea", "title"),
}
_CLEANER: Final = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags=_DROPPED_WHOLE,
    attributes=_ATTRIBUTES,
    set_tag_attribute_values={
        "audio": {"controls": ""},
        "video": {"controls": ""},
    },
    url_schemes={
        "ftp",
        "geo",
        "http",
        "https",
        "magnet",
        "mailto",
        "sms",
        "tel",
        "xmpp",
    },
    link_rel="noopener noreferrer",
)


def sanitize(entry: Entry) -> Entry:
    """The entry with all its content as clean HTML; text becomes HTML that shows it.

    No scripts, styles, forms, frames, event handlers, ids or classes, and no addresses
    but of a few kinds. Titles are text, and extensions are what the feed says.
    """
    return _with_texts(entry, clean=True)


def disarm(entry: Entry) -> Entry:
    """As `sanitize`, for content that takes too much to clean: its source is shown."""
    return _with_texts(entry, clean=False)


def _with_texts(entry: Entry, *, clean: bool) -> Entry:
    return replace(
        entry,
        content=_text(entry.content, clean),
        summary=_text(entry.summary, clean),
        objects=tuple(_object(each, clean) for each in entry.objects),
    )


def _object(activity_object: ActivityObject, clean: bool) -> ActivityObject:
    return replace(activity_object, content=_text(activity_object.content, clean))


def _text(text: Text | None, clean: bool) -> Text | None:
    if text is None:
        return None
    if clean and text.type in ("html", "xhtml"):
        cleaned = _CLEANER.clean(text.value)
        if len(cleaned) <= LARGEST_GROWTH * len(text.value) + 1_000:
            return Text(value=cleaned, type="html") if cleaned else None
    shown = escape(text.value, quote=False).replace("\n", "<br>\n")
    return Text(value=shown, type="html")
