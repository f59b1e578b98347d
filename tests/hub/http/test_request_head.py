"""What of a URL is asked for, and of whom."""

from __future__ import annotations

from itertools import product

from yarl import URL

from hub.http.exchange import target_of
from hub.http.network_errors import Unreachable

HOSTS = ("a.example", "A.example", "a.example.", "1.2.3.4", "1.2.3", "[::1]", "u@b", "")
PORTS = ("", ":80", ":443", ":8080", ":0", ":99999")
RESTS = ("", "/", "/a/../b", "/a?b", "?b", "/a?", "/a#c", "/%7e?x=[1]", "/ä")


def test_a_target_is_what_yarl_reads_of_the_url() -> None:
    for scheme, *pieces in product(("http", "https"), HOSTS, PORTS, RESTS):
        url = f"{scheme}://{''.join(pieces)}"
        try:
            target = target_of(url)
        except Unreachable:
            assert not _is_readable(url), url
            continue
        read = URL(url, encoded=url.isascii())
        assert target.server == (scheme == "https", read.raw_host, read.port), url
        assert target.authority == read.host_port_subcomponent, url
        assert target.path == read.raw_path_qs, url


def _is_readable(url: str) -> bool:
    try:
        read = URL(url, encoded=url.isascii())
        return bool(read.raw_host and read.port)
    except ValueError:
        return False
