"""The address guard: judges every address and port before it is dialled. Pure.

It runs where the connection is made, on the very address that is connected to, so
neither a redirect nor a DNS answer nor an odd spelling gets around it.

Only addresses of the public internet pass. `ipaddress.is_global` is not enough for
that: it passes multicast, NAT64 and 6to4 addresses that lead to private ones, and
ranges younger than the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
AddressRange = IPv4Network | IPv6Network

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")

_SPECIAL_IPV4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, some clouds' metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent, public by number only
        "169.254.0.0/16",  # link-local, most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",  # IETF protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_SPECIAL_IPV6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF assignments: Teredo, benchmarking, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 wraps an IPv4 address
        "3fff::/20",  # documentation
    )
)


@lru_cache(4096)
def parse_literal(host: str) -> Address | None:
    """The address that a host literal names, without IPv6 brackets; None for names."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def unwrap(address: Address) -> Address:
    """The IPv4 address that packets to an IPv4-mapped or NAT64 address really reach."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether the address is ordinary global unicast, also after unwrapping.

    Of IPv6 only 2000::/3 is: that leaves out loopback, IPv4-compatible, local-use
    NAT64 (64:ff9b:1::/48), 100::/64, 5f00::/16, unique local, link-local, site-local
    and multicast addresses at once.
    """
    address = unwrap(address)
    if isinstance(address, IPv4Address):
        special = any(address in block for block in _SPECIAL_IPV4)
    else:
        special = address not in _GLOBAL_UNICAST or any(
            address in block for block in _SPECIAL_IPV6
        )
    return address.is_global and not special


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
        self.has_allowed_networks = bool(self._allowed)
        self._judge = lru_cache(_REMEMBERED)(self._judge_once)

    def permits(self, host: str, port: int) -> bool:
        """Whether to connect to this literal; False for whatever is not a literal."""
        in_allowed_network, public = self._judge(host)
        return in_allowed_network or (public and port not in self._denied_ports)

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
