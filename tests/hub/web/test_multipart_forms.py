"""Forms with files, as browsers send them."""

from __future__ import annotations

import pytest

from hub.web.multipart_forms import FormPart, read_parts

TYPE = "multipart/form-data; boundary=----x"
FIELD = b'Content-Disposition: form-data; name="text"\r\n\r\n'
FILE = (
    b'Content-Disposition: form-data; name="list"; filename="name=\\"a\\".opml"\r\n'
    b"Content-Type: text/xml\r\n\r\n"
)


def form(*parts: bytes, end: bytes = b"------x--\r\n") -> bytes:
    return b"".join(b"------x\r\n" + each + b"\r\n" for each in parts) + end


def test_fields_and_files_come_in_their_order_as_they_were_sent() -> None:
    body = form(FIELD + b"a\r\n\r\nb", FILE + b"\x00\r\n--x\xff", FIELD)
    assert list(read_parts(body, TYPE)) == [
        FormPart(name="text", content=b"a\r\n\r\nb", is_file=False),
        FormPart(name="list", content=b"\x00\r\n--x\xff", is_file=True),
        FormPart(name="text", content=b"", is_file=False),
    ]


def test_the_boundary_may_be_quoted() -> None:
    quoted = 'Multipart/Form-Data; charset=utf-8; boundary="----x"'
    [part] = read_parts(form(FIELD + b"1"), quoted)
    assert part.content == b"1"


def test_a_form_may_be_empty() -> None:
    assert list(read_parts(b"------x--\r\n", TYPE)) == []


@pytest.mark.parametrize(
    ("body", "type"),
    [
        (form(FIELD), "multipart/form-data"),
        (form(FIELD), "text/plain; boundary=----x"),
        (b"", TYPE),
        (form(FIELD, end=b""), TYPE),
        (form(b"Content-Type: text/plain\r\n\r\n1"), TYPE),
        (form(b'Content-Disposition: form-data; name="text"'), TYPE),
        (form(b'Content-Disposition: form-data; name="\xff"\r\n\r\n'), TYPE),
    ],
)
def test_what_is_no_form_is_an_error(body: bytes, type: str) -> None:
    with pytest.raises(ValueError, match=r"boundary|end|name|decode"):
        list(read_parts(body, type))
