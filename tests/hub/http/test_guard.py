from __future__ import annotations

from ipaddress import ip_network

import pytest

from hub.http.guard import Guard

LOOPBACK = ip_network("127.0.0.0/8")
REFUSED_PORTS = [22, 25, 53, 110, 143, 445, 2375, 3306, 5432, 6379, 9200, 11211, 27017]
OPEN_PORTS = [80, 81, 443, 3000, 4000, 8000, 8080, 8443, 8888, 9000, 49152]


@pytest.mark.parametrize("port", OPEN_PORTS)
def test_a_public_address_is_permitted_on_an_ordinary_port(port: int) -> None:
    assert Guard().permits("8.8.8.8", port)


@pytest.mark.parametrize("port", REFUSED_PORTS)
def test_ports_of_internal_services_are_refused_everywhere(port: int) -> None:
    assert not Guard().permits("8.8.8.8", port)


def test_the_denied_ports_can_be_others() -> None:
    guard = Guard(denied_ports=frozenset({81}))
    assert not guard.permits("8.8.8.8", 81)
    assert guard.permits("8.8.8.8", 22)


def test_an_allowed_network_is_permitted_on_every_port() -> None:
    guard = Guard([LOOPBACK])
    assert guard.permits("127.0.0.1", 80)
    assert guard.permits("127.0.0.1", 6379)
    assert not guard.permits("10.0.0.1", 80)


@pytest.mark.parametrize("host", ["::ffff:127.0.0.1", "64:ff9b::127.0.0.1"])
def test_an_allowed_network_is_recognised_in_a_wrapped_address(host: str) -> None:
    assert Guard([LOOPBACK]).allows(host)


def test_nothing_is_allowed_without_allowed_networks() -> None:
    assert not Guard().has_allowed_networks
    assert not Guard().allows("127.0.0.1")
    assert not Guard().allows("8.8.8.8")


@pytest.mark.parametrize("host", ["localhost", "example.com", "127.1", ""])
def test_only_literals_are_ever_permitted(host: str) -> None:
    assert not Guard([LOOPBACK]).permits(host, 80)
