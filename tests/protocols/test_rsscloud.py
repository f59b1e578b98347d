from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from protocols.legacy_pings import cloud_url, is_registered, registration_form


def test_a_registration_tells_where_to_notify() -> None:
    body = registration_form(
        callback="https://us.example/upstream/x", topic="https://feed.example/?a=1&b=2"
    )
    assert parse_qsl(body.decode(), keep_blank_values=True) == [
        ("notifyProcedure", ""),
        ("domain", "us.example"),
        ("port", "443"),
        ("path", "/upstream/x"),
        ("protocol", "https-post"),
        ("url1", "https://feed.example/?a=1&b=2"),
    ]


@pytest.mark.parametrize(
    ("callback", "port", "protocol"),
    [
        ("http://us.example/x", "80", "http-post"),
        ("http://us.example:8080/x", "8080", "http-post"),
    ],
)
def test_without_tls_it_says_so(callback: str, port: str, protocol: str) -> None:
    fields = dict(parse_qsl(registration_form(callback=callback, topic="t").decode()))
    assert (fields["port"], fields["protocol"]) == (port, protocol)


@pytest.mark.parametrize(
    ("body", "registered"),
    [
        (b'<notifyResult success="true" msg="Thanks"/>', True),
        (b"<notifyResult success='1'/>", True),
        (b'{"success": true, "msg": "Thanks"}', True),
        (b'<notifyResult success="false" msg="No"/>', False),
        (b'{"success":false}', False),
        (b"", False),
    ],
)
def test_a_cloud_says_whether_it_took_it(body: bytes, registered: bool) -> None:
    assert is_registered(body) is registered


@pytest.mark.parametrize("port", [5337, None])
def test_what_is_no_text_is_none(port: object) -> None:
    cloud = {"domain": "c.example", "path": "/a", "protocol": "http-post", "port": port}
    assert cloud_url(cloud) == "http://c.example/a"


def test_a_path_is_one_line() -> None:
    assert not cloud_url(
        {"domain": "c.example", "path": "/a\nb", "protocol": "http-post"}
    )
