"""Which pages readers are shown, and how (OpenFeeder 10)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from protocols.openfeeder.write.content_queries import AuthorDisplay
from protocols.openfeeder.write.page_chunks import PageFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatekeeper:
    """The four options of the specification. If ``key`` is "", everybody may read."""

    excluded_paths: tuple[str, ...] = ()
    excluded_types: frozenset[str] = frozenset()
    authors: AuthorDisplay = AuthorDisplay.NAME
    key: str = ""

    def admits(self, authorization: str) -> bool:
        """Whether a header shows the key; the time that this takes reveals nothing
        about it."""
        if not self.key:
            return True
        scheme, _, shown = authorization.partition(" ")
        is_same = secrets.compare_digest(
            shown.strip().encode(errors="replace"), self.key.encode()
        )
        return is_same and scheme.lower() == "bearer"

    def shows(self, facts: PageFacts) -> bool:
        return facts.type not in self.excluded_types and self.shows_url(facts.url)

    def shows_url(self, url: str) -> bool:
        """Whether a URL is outside of the excluded paths.

        Paths are compared by whole segments: ``/cart`` excludes ``/cart/1``, not
        ``/cartography``. A URL that cannot be parsed is not shown.
        """
        if not self.excluded_paths:
            return True
        try:
            path = unquote(urlsplit(url).path) or "/"
        except ValueError:  # for instance "http://[", half an IPv6 address
            return False
        return not any(_begins(path, each) for each in self.excluded_paths)


def _begins(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")
