from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.http.guard import is_public, parse_literal, unwrap

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "198.17.255.255",
    "223.255.255.255",
    "2606:2800:220:1::1",
    "2a00:1450:4001::200e",
    "::ffff:8.8.8.8",  # IPv4-mapped
    "64:ff9b::808:808",  # NAT64, how IPv6-only hosts reach IPv4
]
NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",  # IPv4-compatible
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",  # local-use NAT64
    "64:ff9b:1::808:808",
    "100::1",  # discard only
    "100:0:0:1::1",
    "2001::1",  # Teredo
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",  # benchmarking
    "2001:10::1",  # ORCHID
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "3fff::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_an_ordinary_global_unicast_address_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_a_special_purpose_address_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@given(st.ip_addresses(v=4))
def test_wrapping_an_ipv4_address_does_not_change_the_verdict(
    address: IPv4Address,
) -> None:
    mapped = IPv6Address(0xFFFF << 32 | int(address))
    nat64 = IPv6Address(0x64_FF9B << 96 | int(address))
    assert unwrap(mapped) == unwrap(nat64) == address
    assert is_public(mapped) == is_public(nat64) == is_public(address)


@given(st.ip_addresses())
def test_nothing_is_public_that_the_standard_library_calls_private(
    address: IPv4Address | IPv6Address,
) -> None:
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not is_public(address) or unwrap(address) != address


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("fe80::1%lo", "fe80::1%lo"),
    ],
)
def test_a_host_literal_is_parsed(host: str, address: str) -> None:
    assert parse_literal(host) == ip_address(address)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1", ""])
def test_whatever_is_not_canonical_is_no_literal(host: str) -> None:
    assert parse_literal(host) is None
