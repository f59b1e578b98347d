"""What an element inherits: ``xml:base``, ``xml:lang``, and the document's URL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from protocols.feeds.context import ParseContext
from protocols.feeds.element import Element
from protocols.feeds.long_texts import LongTexts
from protocols.feeds.namespaces import XML
from protocols.languages import language_tag
from protocols.model import Link
from protocols.urls import is_web_url, resolve

_BASE = f"{XML}base"
_LANGUAGE = f"{XML}lang"
# Begins with one letter, which the regular expression engine finds quickly.
_STATEMENT: Final = re.compile(rb"x(?=ml:(?:base|lang))")


class Scope(Struct, frozen=True):
    """The base and the language inside an element.

    ``base`` resolves references; ``is_stated``: it comes from an ``xml:base``.
    ``is_uniform``: no element inside has a base or a language of its own, so none is
    looked for. ``is_unspoken``: an empty ``xml:lang`` took the language back. ``texts``
    are those that were taken out of the document.
    """

    base: str
    language: str = ""
    is_stated: bool = False
    is_uniform: bool = False
    is_unspoken: bool = False
    texts: LongTexts | None = None

    @classmethod
    def of_document(
        cls, context: ParseContext, texts: LongTexts | None = None
    ) -> Scope:
        return cls(context.url if is_web_url(context.url) else "", texts=texts)

    def within_root(self, root: Element, body: bytes) -> Scope:
        """The scope inside the root of a document in UTF-8."""
        own = sum(name in (_BASE, _LANGUAGE) for name, _ in root.items())
        found = islice(_STATEMENT.finditer(body), own + 1)
        return replace(self.within(root), is_uniform=sum(1 for _ in found) <= own)

    def within(self, element: Element) -> Scope:
        """The scope inside an element; the same object if the element changes
        nothing.
        """
        if self.is_uniform:
            return self
        base, language = element.get(_BASE), element.get(_LANGUAGE)
        if base is None and language is None:
            return self
        spoken = self.language if language is None else language_tag(language)
        if not spoken and language and not language.isspace():
            spoken = self.language  # names no language, so the inherited one stays
        return Scope(
            (resolve(base, self.base) if base else "") or self.base,
            spoken,
            self.is_stated or bool(base),
            is_unspoken=not spoken and (self.is_unspoken or bool(self.language)),
            texts=self.texts,
        )

    def within_site(self, links: Iterable[Link], rels: tuple[str, ...]) -> Scope:
        """The scope with the first absolute link of these relations as base, if none is
        stated.

        RSS says nothing about relative references; publishers write them relative to
        the site.
        """
        if self.is_stated:
            return self
        sites = {link.rel: link.href for link in reversed([*links])}
        for rel in rels:
            if is_web_url(sites.get(rel, "")):
                return replace(self, base=sites[rel])
        return self

    def resolve(self, reference: str | None) -> str:
        return resolve(reference, self.base)
