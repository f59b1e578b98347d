"""The sitemap that names collections (SCP, Appendix A), valid by both schemas.

All of SCP's elements come first and at least one ``<url>`` after them, as the schema of
sitemaps demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from protocols.scp.collection import EXTENSION, VERSION, CollectionHead, timestamp
from protocols.xml_syntax import XmlWriter

SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_FREQUENCIES: Final = ((3_600, "hourly"), (86_400, "daily"), (7 * 86_400, "weekly"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSection:
    name: str
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCollection:
    """``size`` is in bytes as sent."""

    head: CollectionHead
    url: str
    expires: datetime
    pages: int
    size: int


def update_frequency(seconds: float) -> str:
    """SCP's word for an interval; there is none for less than an hour."""
    for longest, word in _FREQUENCIES:
        if seconds <= longest:
            return word
    return "monthly"


def render_sitemap(
    *,
    sections: Sequence[ListedSection],
    collections: Sequence[ListedCollection],
    pages: Sequence[str],
    compression: Sequence[str],
    frequency: str,
) -> bytes:
    """Write the sitemap. ``pages`` are URLs of the site itself, at least one."""
    writer = XmlWriter()
    writer.put(
        b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="%b" xmlns:scp="%b">\n'
        % (SITEMAP.encode(), EXTENSION.encode())
    )
    writer.put(b"<scp:version>%b</scp:version>\n" % VERSION.encode())
    codings = ",".join(compression).encode()
    writer.put(b"<scp:compression>%b</scp:compression>\n" % codings)
    for section in sections:
        _put(
            writer,
            b"scp:section",
            {
                "name": section.name,
                "updateFreq": frequency,
                "pages": str(section.pages),
            },
        )
    for each in collections:
        _put_collection(writer, each)
    for url in pages:
        writer.parts += (b"<url><loc>", url, b"</loc></url>\n", "")
    writer.put(b"</urlset>\n")
    return writer.finish()


def _put_collection(writer: XmlWriter, each: ListedCollection) -> None:
    head = each.head
    attributes = {"section": head.section}
    if head.since is None:
        attributes["type"] = head.type.value
    else:
        attributes["period"] = timestamp(head.generated)
    attributes |= {
        "url": each.url,
        "generated": timestamp(head.generated),
        "expires": timestamp(each.expires),
        "pages": str(each.pages),
        "size": str(each.size),
    }
    if head.since is None:
        _put(writer, b"scp:collection", attributes)
    else:
        attributes["since"] = timestamp(head.since)
        _put(writer, b"scp:delta", attributes)


def _put(writer: XmlWriter, tag: bytes, attributes: dict[str, str]) -> None:
    opening = b"<%b" % tag
    for name, value in attributes.items():
        writer.parts += (b'%b %b="' % (opening, name.encode()), value)
        opening = b'"'
    writer.put(b'"/>\n')
