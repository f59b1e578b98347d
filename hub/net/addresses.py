"""Which addresses belong to the public internet. Pure.

`ipaddress.is_global` is not enough: it passes multicast, NAT64 and 6to4 addresses that
lead to private ones, and ranges younger than the interpreter.
"""

from __future__ import annotations

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
