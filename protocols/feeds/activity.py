"""ActivityStreams in Atom (``as:``): verbs, objects and their types."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from protocols.feeds.atomelements import ATOM_ELEMENTS
from protocols.feeds.drafts import EntryDraft
from protocols.feeds.element import Element, text_of
from protocols.feeds.extensions import keep_element, keep_value
from protocols.feeds.longtexts import LongTexts
from protocols.feeds.modules import Table, read_children
from protocols.feeds.names import qualified
from protocols.feeds.references import make_absolute
from protocols.feeds.scope import Scope
from protocols.model import ActivityObject


def _verb(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.append("verbs", text_of(element))


def _object_type(draft: EntryDraft, element: Element, scope: Scope) -> None:
    draft.append("object_types", text_of(element))


def _object(draft: EntryDraft, element: Element, scope: Scope) -> None:
    """An ``as:object``: an entry in small."""
    read = EntryDraft()
    scope = scope.within(element)
    if scope.texts is not None:
        # It may be kept as a whole, which has to be without stand-ins.
        scope = replace(scope, texts=LongTexts())
    read_children(read, element, scope, _OBJECT)
    read.settle()
    if read.extensions or read.rights or read.contributors:
        keep_element(draft.extensions, element)
    if read.content and read.summary:
        keep_value(draft.extensions, "as", "object", {"summary": read.summary.value})
    draft.append(
        "objects",
        ActivityObject(
            id=read.id,
            title=read.title,
            published=read.published,
            updated=read.updated,
            content=make_absolute(read.content or read.summary, scope.base),
            authors=tuple(read.authors),
            categories=read.categories,
            links=read.links,
            object_types=tuple(read.object_types),
        ),
    )


_OBJECT: Final[Table[EntryDraft]] = {
    **ATOM_ELEMENTS,
    **qualified("as", {"object-type": _object_type}),
}
ACTIVITY: Final[Table[EntryDraft]] = qualified(
    "as", {"object": _object, "object-type": _object_type, "verb": _verb}
)
