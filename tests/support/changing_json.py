"""JSON Feeds as they change from one fetch to the next, for property tests.

They are deliberately odd: items share ids and links, have none, are no objects, or are
nested too deep to be written again; heads change what items inherit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

Members = dict[str, Any]

HUGE: Final = 123456789012345678901234567890
"""As a float, this number is the same as the next one."""
VERSION: Final = "https://jsonfeed.org/version/1.1"


def nested(depth: int) -> Any:
    value: Any = "in"
    for _ in range(depth):
        value = [value]
    return value


_IDS: Final = (
    *("1", "2", "3", "4", "http://e.example/6", "é", " 1 "),
    *("", None, 5, 5.0, HUGE, HUGE + 1, True),
)
_URLS: Final = (
    *("https://e.example/b", "/a", "https://e.example/c", "d?utm_a=1"),
    *("", None, 7),
)
_MEMBERS: Final[tuple[Members, ...]] = (
    *({}, {"title": "one"}, {"title": "two", "summary": "short"}),
    {"content_html": "<a href='x'>relative</a>"},
    {"content_text": "plain", "tags": ["a", " b "]},
    {"date_published": "2026-01-01T00:00:00Z", "title": "dated"},
    {"language": "fr", "authors": [{"name": "Ann", "url": "/ann"}]},
    {"attachments": [{"url": "/1.mp3", "mime_type": "audio/mpeg"}]},
    {"date_modified": "no date", "_own": {"a": [1, 2.5, -0.0]}, "title": ["no text"]},
    {"_deep": nested(300)},
)
_HEADS: Final[tuple[Members, ...]] = (
    *({"title": "A feed"}, {"title": "Another"}, {"_written": 1}, {"_written": 2}),
    *({"language": "en"}, {"language": "it"}),
    *(
        {"home_page_url": "https://e.example/"},
        {"home_page_url": "https://e.example/b"},
    ),
    {"authors": [{"name": "Bea"}], "hubs": [{"type": "WebSub", "url": "/hub"}]},
)
_SPLICES: Final = ('"', "{", "}", "[", "]", ",", "0", "\\", "é", "\x00", " ", "//")


@dataclass(frozen=True)
class ChangingJson:
    head: Members
    items: tuple[Any, ...]
    shape: str = "feed"
    indent: int | None = None
    splices: tuple[tuple[int, str], ...] = ()

    def written(self) -> bytes:
        feed = {"version": VERSION, **self.head, "items": self.items}
        document: Any = feed
        match self.shape:
            case "listed":
                document = [feed]
            case "items":
                document = self.items
            case "unversioned":
                del feed["version"]
        text = json.dumps(document, indent=self.indent)
        for place, splice in self.splices:
            at = place % (len(text) + 1)
            text = text[:at] + splice + text[at:]
        return text.encode()


def _mostly(tame: int, all: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Draw mostly tame values: documents in which everything is odd are seldom read."""
    return st.integers(0, 9).flatmap(
        lambda drawn: st.sampled_from(all[:tame] if drawn else all)
    )


@st.composite
def _items(draw: st.DrawFn) -> Any:
    if not draw(st.integers(0, 30)):
        return draw(st.sampled_from([None, 5, "text", []]))
    item: Members = {
        "id": draw(_mostly(6, _IDS)),
        "url": draw(_mostly(4, _URLS)),
        "content_text": "what it says",
        **draw(_mostly(9, _MEMBERS)),
    }
    return {name: value for name, value in item.items() if value is not None}


_heads = st.lists(st.sampled_from(_HEADS), max_size=3).map(
    lambda parts: {name: value for part in parts for name, value in part.items()}
)
_shapes = _mostly(1, ("feed", "listed", "items", "unversioned"))
_feeds = st.builds(
    ChangingJson,
    head=_heads,
    items=st.lists(_items(), max_size=6, unique_by=repr).map(tuple),
    shape=_shapes,
)


def _changed(draw: st.DrawFn, feed: ChangingJson) -> ChangingJson:
    """A feed with an item more or less, moved, changed, or repeated."""
    items = feed.items
    number = draw(st.integers(0, max(len(items) - 1, 0)))
    before, here, after = items[:number], items[number : number + 1], items[number:]
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return replace(feed, items=(*before, draw(_items()), *after))
        case 3:
            return replace(feed, items=before + after[1:])
        case 4:
            return replace(feed, items=tuple(draw(st.permutations(items))))
        case 5:
            return replace(feed, items=items + here)
        case 6:
            place = draw(st.integers(0, 2_000)), draw(st.sampled_from(_SPLICES))
            return replace(feed, splices=(place,))
        case 7:
            return replace(
                feed, shape=draw(_shapes), indent=draw(st.none() | st.just(1))
            )
        case _:
            return replace(feed, head=draw(_heads))


@st.composite
def json_histories(draw: st.DrawFn) -> list[bytes]:
    """The documents of one feed, in the order in which they are fetched."""
    versions = [draw(_feeds)]
    for _ in range(draw(st.integers(1, 6))):
        base = draw(st.sampled_from(versions[-3:]))  # two may take turns
        versions.append(_changed(draw, base))
    return [each.written() for each in versions]
