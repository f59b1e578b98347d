"""A set of hosts, as an operator lists them."""

from __future__ import annotations

from collections.abc import Iterable

from protocols.urls import host_name


class HostSet:
    """Hosts, with all hosts below them."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().strip(".") for host in hosts)

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def covers(self, url: str) -> bool:
        """Whether a URL is on one of these; False for what is not a URL."""
        if not self._hosts:
            return False
        try:
            host = host_name(url)
        except ValueError:
            return False
        labels = host.rstrip(".").split(".")
        return any(".".join(labels[at:]) in self._hosts for at in range(len(labels)))
