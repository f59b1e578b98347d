"""Publishers who want no requests at all: the operator's list of their hosts."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit


class OptOuts:
    """Names of hosts, each of them with all that are below it."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().strip(".") for host in hosts)

    def cover(self, url: str) -> bool:
        """Whether a URL is of a listed host; False for what is no URL."""
        if not self._hosts:
            return False
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            return False
        labels = host.rstrip(".").split(".")
        return any(".".join(labels[at:]) in self._hosts for at in range(len(labels)))
