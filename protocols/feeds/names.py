"""XML namespaces by their usual prefixes, and qualified names in Clark notation.

A namespace has several URIs where feeds in the wild misspell it; the first is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

Value = TypeVar("Value")

NAMESPACES: Final[Mapping[str, tuple[str, ...]]] = {
    "as": ("http://activitystrea.ms/spec/1.0/",),
    "at": ("http://purl.org/atompub/tombstones/1.0",),
    "atom": ("http://www.w3.org/2005/Atom",),
    "atom03": ("http://purl.org/atom/ns#",),
    "content": (
        "http://purl.org/rss/1.0/modules/content/",
        "http://purl.org/rss/1.0/modules/content",
    ),
    "cc": (
        "http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html",
        "http://backend.userland.com/creativeCommonsRssModule",
    ),
    "dc": ("http://purl.org/dc/elements/1.1/", "http://purl.org/dc/elements/1.1"),
    "dcterms": ("http://purl.org/dc/terms/",),
    "feedburner": ("http://rssnamespace.org/feedburner/ext/1.0",),
    "geo": ("http://www.w3.org/2003/01/geo/wgs84_pos#",),
    "georss": ("http://www.georss.org/georss", "http://www.georss.org/georss/10"),
    "gml": ("http://www.opengis.net/gml",),
    "itunes": (
        "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/Podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/PodCast-1.0.dtd",
        "https://www.itunes.com/dtds/podcast-1.0.dtd",
    ),
    "media": (
        "http://search.yahoo.com/mrss/",
        "http://search.yahoo.com/mrss",
        "https://search.yahoo.com/mrss/",
    ),
    "podcast": (
        "https://podcastindex.org/namespace/1.0",
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md",
    ),
    "psc": ("http://podlove.org/simple-chapters",),
    "rdf": ("http://www.w3.org/1999/02/22-rdf-syntax-ns#",),
    "rss": (
        "",
        "http://purl.org/rss/1.0/",
        "http://my.netscape.com/rdf/simple/0.9/",
    ),
    "slash": ("http://purl.org/rss/1.0/modules/slash/",),
    "superfeedr": ("http://superfeedr.com/xmpp-pubsub-ext",),
    "sy": ("http://purl.org/rss/1.0/modules/syndication/",),
    "thr": ("http://purl.org/syndication/thread/1.0",),
    "wfw": ("http://wellformedweb.org/CommentAPI/",),
    "xhtml": ("http://www.w3.org/1999/xhtml",),
}
PREFIXES: Final[Mapping[str, str]] = {
    uri: prefix for prefix, uris in NAMESPACES.items() for uri in uris
}

ATOM: Final = "{http://www.w3.org/2005/Atom}"
ATOM_03: Final = "{http://purl.org/atom/ns#}"
RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
TOMBSTONES: Final = "{http://purl.org/atompub/tombstones/1.0}"
XHTML: Final = "{http://www.w3.org/1999/xhtml}"
XML: Final = "{http://www.w3.org/XML/1998/namespace}"


def qualified(prefix: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The same values by Clark name, for every URI that the prefix stands for."""
    return {
        (f"{{{uri}}}{name}" if uri else name): value
        for uri in NAMESPACES[prefix]
        for name, value in values.items()
    }
