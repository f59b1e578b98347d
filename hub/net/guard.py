"""The address guard: judges every address and port before it is dialled.

It runs where the connection is made, on the very address that is connected to, so
neither a redirect nor a DNS answer nor an odd spelling gets around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from hub.net.addresses import AddressRange, is_public, parse_literal, unwrap

DENIED_PORTS = frozenset(
    {
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79),
        *(87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137),
        *(138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530),
        *(531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989, 990, 993, 995),
        *(1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2380),
        *(3260, 3306, 3389, 3659, 4045, 4369, 5060, 5061, 5432, 5433, 5672, 5900, 5901),
        *(5984, 5985, 5986, 6000, 6379, 6380, 6432, 6443, 6566, 6665, 6666, 6667, 6668),
        *(6669, 6697, 7199, 8300, 8301, 8302, 8500, 8600, 9042, 9092, 9160, 9200, 9300),
        *(10250, 10255, 11211, 15672, 25672, 26379, 27017, 27018, 27019, 28017, 50070),
        *(61616,),
    }
)
"""Ports of mail, databases, caches, brokers and the like: no feed, no webhook there."""

_REMEMBERED = 4096  # literals whose verdict is kept


class Guard:
    """Judges for one purpose: what topics may reach, callbacks need not.

    Addresses in ``allowed`` networks pass whatever they are, on any port; others must
    be public, and their port not one of ``denied_ports``.
    """

    def __init__(
        self,
        allowed: Iterable[AddressRange] = (),
        denied_ports: frozenset[int] = DENIED_PORTS,
    ) -> None:
        self._allowed = tuple(allowed)
        self._denied_ports = denied_ports
        self._judge = lru_cache(_REMEMBERED)(self._judge_once)

    def permits(self, host: str, port: int) -> bool:
        """Whether to connect to this literal; False for whatever is not a literal."""
        in_allowed_network, public = self._judge(host)
        return in_allowed_network or (public and port not in self._denied_ports)

    @property
    def has_allowed_networks(self) -> bool:
        return bool(self._allowed)

    def allows(self, host: str) -> bool:
        """Whether this literal lies in an allowed network."""
        return self._judge(host)[0]

    def _judge_once(self, host: str) -> tuple[bool, bool]:
        address = parse_literal(host)
        if address is None:
            return False, False
        in_allowed_network = any(
            address in network or unwrap(address) in network
            for network in self._allowed
        )
        return in_allowed_network, is_public(address)
