from __future__ import annotations

import xmlrpc.client
from contextlib import suppress
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.legacy_pings import (
    MOST_BYTES,
    MOST_PARAMETERS,
    Fault,
    FaultCode,
    MethodCall,
    cloud_url,
    is_registered,
    ping_answer,
    read_call,
    read_ping,
    registration_form,
    render_answer,
    render_fault,
)

BLOG, FEED = "https://blog.example/", "https://blog.example/feed"


def a_call(*values: str, method: str = "weblogUpdates.ping") -> bytes:
    params = "".join(f"<param><value>{value}</value></param>" for value in values)
    return (
        f"<methodCall><methodName>{method}</methodName>"
        f"<params>{params}</params></methodCall>"
    ).encode()


def fault_of(body: bytes) -> FaultCode:
    with pytest.raises(Fault) as caught:
        read_ping(read_call(body))
    return caught.value.code


def test_a_call_of_another_program_is_read() -> None:
    written = xmlrpc.client.dumps(("A & B", BLOG, True, 4), "weblogUpdates.ping")
    assert read_call(written.encode()) == MethodCall(
        method="weblogUpdates.ping", parameters=("A & B", BLOG, "1", "4")
    )


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=99)
)
def test_any_text_arrives_as_it_was_sent(text: str) -> None:
    call = xmlrpc.client.dumps((text,), "m")
    assert read_call(call.encode()).parameters == (text.strip(),)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_call_or_a_fault(body: bytes) -> None:
    with suppress(Fault):
        assert read_call(body).method


def test_a_value_without_a_type_is_a_string_and_one_of_many_parts_is_nothing() -> None:
    body = a_call("plain", "<struct><member/></struct>", "<array/>", "<string/>", "")
    assert read_call(body).parameters == ("plain", "", "", "", "")


@pytest.mark.parametrize(
    ("declared", "codec"),
    [("UTF-8", "utf-8"), ("iso-8859-1", "latin-1"), ("Windows-1252", "cp1252")],
)
def test_a_call_may_be_in_one_of_the_common_encodings(
    declared: str, codec: str
) -> None:
    head = f'<?xml version="1.0" encoding="{declared}"?>\n'
    body = head.encode() + a_call("Caf\u00e9").decode().encode(codec)
    assert read_call(body).parameters == ("Caf\u00e9",)


BOMB = b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = b'<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("prolog", [BOMB, OUTSIDE, b'<!DOCTYPE a SYSTEM "http://x/">'])
def test_a_document_type_is_refused_whatever_it_says(prolog: bytes) -> None:
    assert fault_of(prolog + a_call("&a;", BLOG)) is FaultCode.NO_CALL


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-32", "utf-7"])
def test_nothing_hides_in_another_encoding(codec: str) -> None:
    declared = f'<?xml version="1.0" encoding="{codec}"?>'
    text = declared + (BOMB + a_call("&a;", BLOG)).decode()
    with pytest.raises(Fault):
        read_call(text.encode(codec))
    with pytest.raises(Fault):
        read_call(declared.encode() + text.encode(codec))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", FaultCode.NOT_WELL_FORMED),
        (b"hub.mode=publish", FaultCode.NOT_WELL_FORMED),
        (a_call("a", "&undefined;"), FaultCode.NOT_WELL_FORMED),
        (b"<methodCall>", FaultCode.NOT_WELL_FORMED),
        (b"<a>" * 3_000 + b"</a>" * 1_000, FaultCode.NOT_WELL_FORMED),
        (a_call("x" * MOST_BYTES), FaultCode.NO_CALL),
        (b"<methodResponse/>", FaultCode.NO_CALL),
        (b"<methodCall/>", FaultCode.NO_CALL),
        (a_call("a", BLOG, method="x" * 101), FaultCode.NO_CALL),
        (a_call("a", BLOG, method="a b"), FaultCode.NO_CALL),
        (a_call(*["a"] * (MOST_PARAMETERS + 1)), FaultCode.WRONG_PARAMETERS),
        (a_call("a", BLOG, method="system.multicall"), FaultCode.NO_SUCH_METHOD),
        (a_call("a", BLOG, method="pingback.ping"), FaultCode.NO_SUCH_METHOD),
        (a_call("a"), FaultCode.WRONG_PARAMETERS),
        (a_call("a", "blog.example"), FaultCode.WRONG_PARAMETERS),
        (a_call("a", "file:///etc/passwd"), FaultCode.WRONG_PARAMETERS),
        (a_call("a", "http://u:p@blog.example/"), FaultCode.WRONG_PARAMETERS),
    ],
)
def test_what_is_no_ping_is_a_fault(body: bytes, code: FaultCode) -> None:
    assert fault_of(body) is code


@pytest.mark.parametrize(
    ("values", "urls"),
    [
        (("A blog", BLOG), (BLOG,)),
        (("A blog", BLOG, FEED), (FEED, BLOG)),  # as WordPress has extendedPing
        (("A blog", BLOG, "", FEED), (FEED, BLOG)),
        (("A blog", BLOG, BLOG, FEED, "https://t.example/|news"), (FEED, BLOG)),
        (("A blog", BLOG, BLOG, "news"), (BLOG,)),
    ],
)
def test_all_urls_of_a_ping_count_the_feed_s_first(
    values: tuple[str, ...], urls: tuple[str, ...]
) -> None:
    call = MethodCall(method="weblogUpdates.extendedPing", parameters=values)
    assert read_ping(call) == urls


def test_an_answer_is_what_other_programs_read() -> None:
    body = render_answer(ping_answer("Thanks <&> all \u2764", is_error=True))
    ((value,), _) = xmlrpc.client.loads(body)
    assert value == {"flerror": True, "message": "Thanks <&> all \u2764"}


def test_a_fault_is_what_other_programs_read() -> None:
    with pytest.raises(xmlrpc.client.Fault) as caught:
        xmlrpc.client.loads(render_fault(Fault(FaultCode.NO_CALL, "<why> & so")))
    assert (caught.value.faultCode, caught.value.faultString) == (-32600, "<why> & so")


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
