"""Parts of a page that change while it is open, and which of them did.

A template marks a part by ``{% call live("feed-7", "tr") %}…{% endcall %}``, which
makes an element of that id. Parts may hold others: a table's body holds its rows. In a
page that is sent once, they are elements and nothing else. In a page that is watched, a
`PartRecorder` keeps each part by itself, and `changed_parts` compares two recordings: a
row that changed is sent without its table.

A part may say by ``of=`` what it is made of. It is then made again only when that value
has changed; nothing else in it may change while the page is open. Rows whose HTML is
there already are put into their table by ``{{ live_rows(rows) }}``.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from markupsafe import Markup, escape

_ID: Final = re.compile(r"[a-z][a-z0-9-]*")
_SECRET: Final = secrets.token_hex(8)
"""Random, so that no text of a feed is taken for a part."""
_PLACE: Final = re.compile(rf"\x00{_SECRET}([a-z0-9-]+)\x00")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """One element. In ``text``, placeholders stand for the parts within it.

    ``inner``: the ids of the parts directly within this one.
    """

    tag: str
    text: str
    of: object = field(default=None, compare=False)
    inner: tuple[str, ...] = field(default=(), compare=False)


PageParts = Mapping[str, PagePart]
"""Parts by id."""


class ReadyPart(Protocol):
    """What is put into an element with this id, unchanged."""

    @property
    def id(self) -> str: ...
    @property
    def html(self) -> Markup: ...


def live_element(
    id: str,
    tag: str = "div",
    *,
    caller: Callable[[], str],
    of: object = None,
    **attributes: str,
) -> Markup:
    """A part of a page that is sent once.

    Names in ``attributes`` have ``_`` in the place of ``-``.
    """
    return Markup(_element(id, tag, attributes, caller()))  # noqa: S704 - escaped


def live_rows(rows: Iterable[ReadyPart]) -> Markup:
    """Rows of a table on a page that is sent once."""
    made = (_element(each.id, "tr", {}, each.html) for each in rows)
    return Markup("".join(made))  # noqa: S704 - ready


class PartRecorder:
    """Records the parts of a watched page while it is rendered; its `element` and
    `rows` replace `live_element` and `live_rows`."""

    def __init__(self) -> None:
        self.parts: dict[str, PagePart] = {}
        self._before: PageParts = {}

    def begin(self) -> None:
        """Start recording another rendering of the page."""
        self._before, self.parts = self.parts, {}

    def element(
        self,
        id: str,
        tag: str = "div",
        *,
        caller: Callable[[], str],
        of: object = None,
        **attributes: str,
    ) -> Markup:
        """Record a part; return its placeholder. Raises `ValueError` for a known id."""
        self._require_new(id)
        known, source = self._before.get(id), (of, attributes)
        if of is not None and known is not None and known.of == source:
            self._keep(id, known)
        else:
            text = _element(id, tag, attributes, caller())
            inner = tuple(_PLACE.findall(text))
            self.parts[id] = PagePart(tag=tag, text=text, of=source, inner=inner)
        return Markup(f"\0{_SECRET}{id}\0")  # noqa: S704 - of a checked id

    def rows(self, rows: Iterable[ReadyPart]) -> Markup:
        """Record rows of a table; return their placeholders. Raises `ValueError` for a
        known id."""
        places = []
        for each in rows:
            self._require_new(each.id)
            part = self._before.get(each.id)
            if part is None or part.of != each.html:
                text = _element(each.id, "tr", {}, each.html)
                part = PagePart(tag="tr", text=text, of=each.html)
            self.parts[each.id] = part
            places.append(f"\0{_SECRET}{each.id}\0")
        return Markup("".join(places))  # noqa: S704 - of checked ids

    def _require_new(self, id: str) -> None:
        if id in self.parts:
            raise ValueError(f"two parts of a page have the id {id}")

    def _keep(self, id: str, part: PagePart) -> None:
        for inner in part.inner:
            self._keep(inner, self._before[inner])
        self.parts[id] = part


def _element(id: str, tag: str, attributes: Mapping[str, str], inside: str) -> str:
    if not _ID.fullmatch(id):
        raise ValueError(f"expected an id of letters, digits and hyphens: {id!r}")
    written = "".join(
        f' {name.replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value
    )
    return f'<{tag} id="{id}" data-live{written}>{inside}</{tag}>'


def changed_parts(before: PageParts, now: PageParts) -> list[str]:
    """The HTML of the parts that have changed, each at most once.

    Within a changed part, an unchanged part is an empty element with the attribute
    ``data-keep``. A new part is sent within the part that holds it.
    """
    changed = {
        id
        for id, part in now.items()
        if (known := before.get(id)) is not part and known != part
    }
    within = {inner for id in changed for inner in now[id].inner}
    outer = changed - within
    return [_html(id, now, changed) for id in now if id in outer]


def all_parts(parts: PageParts) -> list[str]:
    return changed_parts({}, parts)


def _html(id: str, parts: PageParts, changed: Collection[str]) -> str:
    def put(place: re.Match[str]) -> str:
        inner = place[1]
        if inner in changed:
            return _html(inner, parts, changed)
        tag = parts[inner].tag
        return f'<{tag} id="{inner}" data-keep></{tag}>'

    return _PLACE.sub(put, parts[id].text)
