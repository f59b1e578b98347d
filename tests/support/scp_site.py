"""A site that publishes by the Site Content Protocol, written from its specification.

It adds, edits and removes pages, and breaks any rule that it is told to break.
"""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.publisher import Publisher

SITEMAP = "/sitemap.xml"
_OPENING = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">'
    "<scp:version>0.1</scp:version><scp:compression>gzip</scp:compression>"
)


@dataclass
class ScpSite:
    """A site with ``pages`` by section and URL. A minute passes with each file made."""

    site: Publisher
    pages: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)  # elements of the sitemap
    at: datetime = field(
        default_factory=lambda: (
            datetime.fromtimestamp(time.time() // 1, UTC) - timedelta(hours=12)
        )
    )
    reached: dict[str, datetime] = field(default_factory=dict)
    _files: int = 0

    @property
    def url(self) -> str:
        return self.site.url(SITEMAP)

    def put(
        self, path: str, title: str, section: str = "all", **changes: Any
    ) -> dict[str, Any]:
        """Put a page in place; return it."""
        self.at += timedelta(seconds=1)
        url = f"https://site.example/{path}"
        page = {
            "url": url,
            "title": title,
            "description": f"About {title}",
            "modified": stamp(self.at),
            "language": "en",
            "content": [{"type": "text", "text": f"What there is to say of {title}"}],
            **changes,
        }
        self.pages.setdefault(section, {})[url] = page
        return page

    def remove(self, path: str, section: str = "all") -> None:
        del self.pages[section][f"https://site.example/{path}"]

    def snapshot(self, section: str = "all", **lies: Any) -> str:
        """Make a snapshot and name it in the sitemap; return its path."""
        return self._make(section, list(self.pages[section].values()), None, **lies)

    def delta(self, *pages: dict[str, Any], section: str = "all", **lies: Any) -> str:
        """Make a delta of these pages, since the last file of the section."""
        since = lies.pop("since", self.reached[section])
        return self._make(section, list(pages), since, **lies)

    def forget(self) -> None:
        """Publish a sitemap that names nothing."""
        self.named.clear()
        self.publish()

    def _make(
        self,
        section: str,
        pages: list[dict[str, Any]],
        since: datetime | None,
        *,
        body: bytes | None = None,
        tail: bytes = b"",
        named_pages: int | None = None,
        expires: datetime | None = None,
        **head: Any,
    ) -> str:
        self.at += timedelta(minutes=1)
        self._files += 1
        kind = "snapshot" if since is None else "delta"
        members = {
            "id": f"{section}-{self._files}",
            "section": head.pop("head_section", section),
            "type": kind,
            "generated": stamp(self.at),
            **(
                {} if since is None else {"since": head.pop("head_since", stamp(since))}
            ),
            "version": "0.1",
            **head,
        }
        documents = [{"collection": members}, *pages]
        written = "".join(json.dumps(each) + "\n" for each in documents).encode() + tail
        content = gzip.compress(written, mtime=0) if body is None else body
        path = f"/scp/{section}-{self._files}.scp.gz"
        self.site.put(path, content, "application/scp", Content_Encoding="gzip")
        attributes = {
            "section": section,
            **({"type": "snapshot"} if since is None else {"period": "a"}),
            "url": self.site.url(path),
            "generated": stamp(self.at),
            "expires": stamp(expires or self.at + timedelta(days=7)),
            "pages": str(len(pages) if named_pages is None else named_pages),
            "size": str(len(content)),
            **({} if since is None else {"since": stamp(since)}),
        }
        element = "collection" if since is None else "delta"
        words = " ".join(f'{name}="{value}"' for name, value in attributes.items())
        self.named.append(f"<scp:{element} {words}/>")
        self.reached[section] = self.at
        self.publish()
        return path

    def publish(self) -> None:
        """Publish the sitemap, with all that is named."""
        end = "<url><loc>https://site.example/</loc></url></urlset>"
        body = _OPENING + "".join(self.named) + end
        self.site.put(SITEMAP, body, type="application/xml")


def stamp(moment: datetime) -> str:
    return moment.isoformat()[:19] + "Z"
