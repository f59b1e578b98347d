"""XML namespaces by their usual prefixes, and qualified names in Clark notation.

A namespace has several URIs if feeds in the wild use others; the first is correct. URIs
that differ only in scheme, ``www.``, capitals or a final sign mean the same namespace:
site templates write ``https``, which is wrong in XML. Element names in capitals are
read as the usual ones, though XML distinguishes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

from protocols.feeds.element import Element, local_name, namespace_of

Value = TypeVar("Value")

NAMESPACES: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": ("http://webns.net/mvcb/",),
    "app": ("http://www.w3.org/2007/app", "http://purl.org/atom/app#"),
    "arxiv": ("http://arxiv.org/schemas/atom",),
    "as": ("http://activitystrea.ms/spec/1.0/",),
    "at": ("http://purl.org/atompub/tombstones/1.0",),
    "atom": ("http://www.w3.org/2005/Atom",),
    "atom03": ("http://purl.org/atom/ns#",),
    "blogger": ("http://schemas.google.com/blogger/2008",),
    "cc": ("http://creativecommons.org/ns#", "http://web.resource.org/cc/"),
    "content": (
        "http://purl.org/rss/1.0/modules/content/",
        "http://purl.org/rss/1.0/modules/content",
    ),
    "creativeCommons": (
        "http://backend.userland.com/creativeCommonsRssModule",
        "http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html",
    ),
    "dc": ("http://purl.org/dc/elements/1.1/", "http://purl.org/dc/elements/1.1"),
    "dcterms": ("http://purl.org/dc/terms/",),
    "ev": ("http://purl.org/rss/1.0/modules/event/",),
    "feedburner": ("http://rssnamespace.org/feedburner/ext/1.0",),
    "fh": ("http://purl.org/syndication/history/1.0",),
    "flickr": ("urn:flickr:user", "urn:flickr:"),
    "foaf": ("http://xmlns.com/foaf/0.1/",),
    "g": ("http://base.google.com/ns/1.0",),
    "gd": ("http://schemas.google.com/g/2005",),
    "geo": ("http://www.w3.org/2003/01/geo/wgs84_pos#",),
    "georss": ("http://www.georss.org/georss", "http://www.georss.org/georss/10"),
    "gml": ("http://www.opengis.net/gml", "http://www.opengis.net/gml/3.2"),
    "googleplay": (
        "http://www.google.com/schemas/play-podcasts/1.0",
        "http://www.google.com/schemas/play-podcasts/1.0/",
        "http://www.google.com/schemas/play-podcasts/1.0/play-podcasts.xsd",
    ),
    "itunes": (
        "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/Podcast-1.0.dtd",
        "http://www.itunes.com/DTDs/PodCast-1.0.dtd",
        "https://www.itunes.com/dtds/podcast-1.0.dtd",
    ),
    "mastodon": ("http://mastodon.social/schema/1.0",),
    "media": (
        "http://search.yahoo.com/mrss/",
        "http://search.yahoo.com/mrss",
        "https://search.yahoo.com/mrss/",
        "http://www.rssboard.org/media-rss",
        "http://video.search.yahoo.com/mrss/",
    ),
    "opensearch": (
        "http://a9.com/-/spec/opensearch/1.1/",
        "http://a9.com/-/spec/opensearchrss/1.0/",
    ),
    "ostatus": ("http://ostatus.org/schema/1.0",),
    "pingback": ("http://madskills.com/public/xml/rss/module/pingback/",),
    "poco": ("http://portablecontacts.net/spec/1.0",),
    "podcast": (
        "https://podcastindex.org/namespace/1.0",
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md",
    ),
    "post-id": ("com-wordpress:feed-additions:1",),
    "prism": (
        "http://prismstandard.org/namespaces/basic/2.0/",
        "http://prismstandard.org/namespaces/1.2/basic/",
        "http://prismstandard.org/namespaces/basic/2.1/",
    ),
    "psc": (
        "http://podlove.org/simple-chapters",
        "https://podlove.org/simple-chapters/",
    ),
    "rawvoice": (
        "http://www.rawvoice.com/rawvoiceRssModule/",
        "https://blubrry.com/developer/rawvoice-rss/",
    ),
    "rdf": ("http://www.w3.org/1999/02/22-rdf-syntax-ns#",),
    "re": ("http://purl.org/atompub/rank/1.0",),
    "rss": ("", "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"),
    "slash": ("http://purl.org/rss/1.0/modules/slash/",),
    "snf": ("http://www.smartnews.be/snf",),
    "source": ("http://source.scripting.com/",),
    "spotify": ("http://www.spotify.com/ns/rss", "https://www.spotify.com/ns/rss"),
    "superfeedr": ("http://superfeedr.com/xmpp-pubsub-ext",),
    "sy": ("http://purl.org/rss/1.0/modules/syndication/",),
    "thr": ("http://purl.org/syndication/thread/1.0",),
    "trackback": ("http://madskills.com/public/xml/rss/module/trackback/",),
    "webfeeds": ("http://webfeeds.org/rss/1.0",),
    "wfw": ("http://wellformedweb.org/CommentAPI/",),
    "xhtml": ("http://www.w3.org/1999/xhtml",),
    "xlink": ("http://www.w3.org/1999/xlink",),
    "yt": (
        "http://www.youtube.com/xml/schemas/2015",
        "http://gdata.youtube.com/schemas/2007",
    ),
}
PREFIXES: Final[Mapping[str, str]] = {
    uri: prefix for prefix, uris in NAMESPACES.items() for uri in uris
}


def _bare(uri: str) -> str:
    bare = uri.strip().lower().removeprefix("https://").removeprefix("http://")
    return bare.removeprefix("www.").rstrip("/#")


_PREFIXES_OF_BARE: Final[Mapping[str, str]] = {
    _bare(uri): prefix for uri, prefix in PREFIXES.items() if uri
}
_LONGEST_URI: Final = 200
_LONGEST_TAG: Final = 4_000
_DECLARED: Final = re.compile(
    rb"(\sxmlns(?::[\w.-]{1,40})?\s{0,20}=\s{0,20})(?:\"([^\"<>]*)\"|'([^'<>]*)')"
)

ATOM: Final = "{http://www.w3.org/2005/Atom}"
ATOM_03: Final = "{http://purl.org/atom/ns#}"
RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
TOMBSTONES: Final = "{http://purl.org/atompub/tombstones/1.0}"
XHTML: Final = "{http://www.w3.org/1999/xhtml}"
XML: Final = "{http://www.w3.org/XML/1998/namespace}"


def usual_uri(uri: str) -> str:
    """The correct URI of the namespace that a URI stands for; unknown ones are
    unchanged.

    Those of RSS are unchanged, too: it has one for each version, and none is the
    correct one.
    """
    return uri if len(uri) > _LONGEST_URI else _usual_uri(uri)


@lru_cache(1024)
def _usual_uri(uri: str) -> str:
    prefix = PREFIXES.get(uri) or _PREFIXES_OF_BARE.get(_bare(uri), "rss")
    return uri if prefix == "rss" else NAMESPACES[prefix][0]


def with_usual_uris(body: bytes, root: str) -> bytes:
    """The document with the correct namespace URIs in its root's start tag."""
    start = body.find(b"<" + root.encode())
    end = body.find(b">", start) + 1
    tag = body[start:end]
    usual = _usual_tag(tag) if len(tag) <= _LONGEST_TAG else usual_declarations(tag)
    return body if usual == tag else body[:start] + usual + body[end:]


@lru_cache(1024)
def _usual_tag(tag: bytes) -> bytes:
    """Cached, since most sites with the same software begin with the same tag."""
    return usual_declarations(tag)


def usual_declarations(markup: bytes) -> bytes:
    """The markup with the correct URIs in its namespace declarations."""
    return _DECLARED.sub(_declare_usual, markup)


def _declare_usual(match: re.Match[bytes]) -> bytes:
    uri = match[match.lastindex or 0]
    usual = usual_uri(uri.decode("utf-8", "replace")).encode()
    return match[0] if usual == uri else b'%b"%b"' % (match[1], usual)


def qualified(prefix: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The same values by Clark name, for every URI that the prefix stands for."""
    return {
        (f"{{{uri}}}{name}" if uri else name): value
        for uri in NAMESPACES[prefix]
        for name, value in values.items()
    }


_CONTAINERS: Final = frozenset({"channel", "entry", "item"})
_USUAL: Final = {
    name.lower(): name
    for name in (
        *("commentRss", "fileSize", "isPermaLink", "lastBuildDate", "managingEditor"),
        *("origLink", "pubDate", "skipDays", "skipHours", "textInput", "updateBase"),
        *("updateFrequency", "updatePeriod", "webMaster", "Point"),
    )
}


@lru_cache(4096)
def usual_name(tag: str) -> str:
    """A tag as it is usually written: ``pubDate`` for ``PUBDATE`` and ``PubDate``."""
    name, uri = local_name(tag), namespace_of(tag)
    usual = _USUAL.get(name.lower(), name.lower())
    return f"{{{usual_uri(uri)}}}{usual}" if uri else usual


def has_containers_in_capitals(root: Element) -> bool:
    """Whether there are channels, items or entries with capitals, which no reader
    finds.
    """
    names = {local_name(element.tag) for element in root.iter()}
    return any(name.lower() in _CONTAINERS for name in names - _CONTAINERS)


def use_usual_names(root: Element) -> None:
    """Rename all elements and their attributes to their usual names."""
    for element in root.iter():
        element.tag = usual_name(element.tag)
        for name, value in element.items():
            usual = usual_name(name)
            if usual != name:
                del element.attrib[name]
                element.attrib[usual] = value
