"""How XML of strangers is parsed, whatever it is: nothing is fetched, nothing expanded.

libxml2 bounds depth and text sizes itself (no ``huge_tree``). A document type has to be
refused or removed before, in the very encoding that is parsed.
"""

from __future__ import annotations

from typing import Final, TypedDict


class Options(TypedDict):
    """Of `lxml.etree.XMLParser` and `lxml.etree.iterparse`."""

    encoding: str
    no_network: bool
    resolve_entities: bool
    load_dtd: bool
    huge_tree: bool
    remove_comments: bool
    remove_pis: bool


SAFE: Final = Options(
    encoding="utf-8",
    no_network=True,
    resolve_entities=False,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)
