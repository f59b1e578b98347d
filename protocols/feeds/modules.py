"""The extension modules that RSS, RDF and Atom have in common.

A table maps the Clark name of a child element to the handler that reads it into the
draft. Each module has its own file; what no table knows is kept by `extensions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from protocols.feeds.capitals import usual_name
from protocols.feeds.drafts import Draft
from protocols.feeds.dublincore import DUBLIN_CORE
from protocols.feeds.element import Element
from protocols.feeds.extensions import keep_element
from protocols.feeds.geo import GEO
from protocols.feeds.itunes import ITUNES
from protocols.feeds.media import MEDIA
from protocols.feeds.scope import Scope

SomeDraft = TypeVar("SomeDraft", bound=Draft)
Handler: TypeAlias = Callable[[SomeDraft, Element, Scope], None]
Table: TypeAlias = Mapping[str, Handler[SomeDraft]]

MODULES: Final[Table[Draft]] = {**DUBLIN_CORE, **GEO, **ITUNES, **MEDIA}


def read_children(
    draft: SomeDraft, element: Element, scope: Scope, table: Table[SomeDraft]
) -> None:
    """Read every child of an item, entry or head into the draft."""
    find = table.get
    for child in element:
        handler = find(child.tag) or find_in_capitals(table, child)
        if handler is None:
            keep_element(draft.extensions, child)
        else:
            handler(draft, child, scope)


def find_in_capitals(
    table: Table[SomeDraft], element: Element
) -> Handler[SomeDraft] | None:
    """The handler of an element by its usual name, which it then gets."""
    tag = element.tag
    usual = usual_name(tag)
    if usual == tag:
        return None
    handler = table.get(usual)
    if handler is not None:
        element.tag = usual
    return handler
