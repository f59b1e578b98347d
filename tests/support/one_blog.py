"""One blog as each format would publish it: the same posts, written differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

HOME: Final = "https://mara.example/"
DATE: Final = "2026-01-01T00:00:00Z"
_RDF: Final = (
    "<rdf:RDF xmlns='http://purl.org/rss/1.0/'"
    " xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    f"<channel rdf:about='{HOME}'><title>Mara</title><link>{HOME}</link>"
    "<description>d</description></channel>"
)

Write = Callable[[Sequence[str]], bytes]
"""Makes a document with these posts, by their names."""


def _rss(names: Sequence[str], guid: str) -> bytes:
    items = "".join(
        f"<item><title>On {name}</title><link>{HOME}{name}</link>{guid % name}"
        "<pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate>"
        f"<description>All about {name}</description></item>"
        for name in names
    )
    head = f"<title>Mara</title><link>{HOME}</link><description>d</description>"
    return f"<rss version='2.0'><channel>{head}{items}</channel></rss>".encode()


def _rdf(names: Sequence[str]) -> bytes:
    items = "".join(
        f"<item rdf:about='{HOME}{name}'><title>On {name}</title>"
        f"<link>{HOME}{name}</link><description>All about {name}</description></item>"
        for name in names
    )
    return f"{_RDF}{items}</rdf:RDF>".encode()


def _atom(names: Sequence[str], id: str) -> bytes:
    entries = "".join(
        f"<entry><title>On {name}</title><id>{id}{name}</id>"
        f"<link href='{HOME}{name}'/><updated>{DATE}</updated>"
        f"<content type='html'>&lt;p&gt;All about {name}</content></entry>"
        for name in names
    )
    head = f"<title>Mara</title><id>urn:mara</id><updated>{DATE}</updated>"
    return f"<feed xmlns='http://www.w3.org/2005/Atom'>{head}{entries}</feed>".encode()


def _json(names: Sequence[str], id: Callable[[str], str]) -> bytes:
    items = [
        {
            "id": id(name),
            "url": f"{HOME}{name}",
            "title": f"On {name}",
            "content_text": f"All about {name}",
            "date_published": DATE,
        }
        for name in names
    ]
    version = "https://jsonfeed.org/version/1.1"
    return json.dumps({"version": version, "title": "Mara", "items": items}).encode()


def _creator(names: Sequence[str]) -> bytes:
    items = [
        {
            "slug": name,
            "title": f"On {name}",
            "summary": f"All about {name}",
            "url": f"{HOME}{name}",
            "publishedAt": DATE,
            "updatedAt": DATE,
            "kinds": ["text"],
        }
        for name in names
    ]
    creator = {"handle": "mara", "displayName": "Mara"}
    return json.dumps({"version": 1, "creator": creator, "items": items}).encode()


FORMATS: Final[Mapping[str, Write]] = {
    "RSS": lambda names: _rss(names, f"<guid>{HOME}%s</guid>"),
    "RSS without ids": lambda names: _rss(names, "<!-- %s -->"),
    "RSS with other ids": lambda names: _rss(
        names, "<guid isPermaLink='false'>post %s</guid>"
    ),
    "RDF": _rdf,
    "Atom": lambda names: _atom(names, HOME),
    "Atom with other ids": lambda names: _atom(names, "tag:mara.example,2026:"),
    "JSON Feed": lambda names: _json(names, lambda name: f"{HOME}{name}"),
    "JSON Feed with numbers": lambda names: _json(names, lambda name: str(ord(name))),
    "creator feed.json": _creator,
}
