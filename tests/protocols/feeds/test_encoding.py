from __future__ import annotations

import codecs

import pytest

from protocols.feeds import parse
from protocols.feeds.encoding import known_codec, mend_utf8, to_utf8
from tests.support.feeds import CONTEXT, context

TITLE = "Déjà vu “мир” 日本"


def document(title: str, declared: str = "") -> str:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    return f"{declaration}<rss><channel><title>{title}</title></channel></rss>"


@pytest.mark.parametrize("mark", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("declared", ["", "utf-16", "iso-8859-1"])
def test_unicode_is_found_by_its_mark_or_its_look(
    codec: str, mark: bool, declared: str
) -> None:
    body = document(TITLE, declared).encode(codec)
    body = "\ufeff".encode(codec) + body if mark else body
    if not mark and codec == "utf-8" and declared == "utf-16":
        return  # nothing tells that this is not what it says it is
    assert parse(body, CONTEXT).feed.title == TITLE


@pytest.mark.parametrize(
    ("title", "codec", "declared", "content_type"),
    [
        ("Déjà", "iso-8859-1", "ISO-8859-1", ""),
        ("Déjà", "iso-8859-1", "", "text/xml; charset=iso-8859-1"),
        ("“Déjà”", "cp1252", "ISO-8859-1", ""),
        ("“Déjà”", "cp1252", "us-ascii", ""),
        ("Мир", "koi8-r", "koi8-r", ""),
        ("Мир", "cp1251", "koi8-r", 'text/xml; charset="windows-1251"'),
        ("日本", "shift_jis", "Shift_JIS", ""),
        ("日本", "euc_jp", "EUC-JP", "application/xml"),
        ("日本", "iso2022_jp", "ISO-2022-JP", ""),
        ("中文", "gb18030", "gb2312", ""),
        ("한국", "euc_kr", "euc-kr", ""),
        # the claim is wrong, and the bytes say so
        ("Déjà", "utf-8", "ISO-8859-1", ""),
        ("Déjà", "utf-8", "windows-1252", "text/xml; charset=us-ascii"),
        ("Déjà", "utf-8", "", "text/xml; charset=iso-8859-1"),
        ("Déjà", "cp1252", "windows-1252", "text/xml; charset=utf-8"),
        # the claim is no claim
        ("Déjà", "utf-8", "x-unknown", "text/xml; charset=rot13"),
        ("Plain", "ascii", "utf-7", ""),
    ],
)
def test_the_header_precedes_the_declaration_and_the_bytes_precede_both(
    title: str, codec: str, declared: str, content_type: str
) -> None:
    body = document(title, declared).encode(codec)
    parsed = parse(body, context(content_type=content_type))
    assert (parsed.feed.title, parsed.path) == (title, "strict")


def test_bytes_that_fit_no_claim_are_replaced_and_noted() -> None:
    body = (
        document("日", "euc-jp").encode("euc_jp").replace(b"</title>", b"\xff</title>")
    )
    parsed = parse(body, CONTEXT)
    assert parsed.feed.title == "日\ufffd"
    assert parsed.path == "bytes"
    assert parsed.problems == ("bytes that are not euc_jp were replaced",)


def test_a_single_byte_claim_with_undefined_bytes_still_reads() -> None:
    body = document("a").encode().replace(b">a<", b">\x81\xe9<")
    utf8 = to_utf8(body, "text/xml; charset=windows-1252")
    assert utf8.body.decode().count("\ufffd") == 1
    assert utf8.problem == "bytes that are not cp1252 were replaced"


def test_utf8_with_windows_bytes_in_it_is_mended() -> None:
    assert mend_utf8("Déjà ".encode() + b"\x93vu\x94 \x81") == "Déjà “vu” \ufffd"


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("latin1", "cp1252"),
        ("base64", ""),
        ("unicode_escape", ""),
        ("nonsense", ""),
        ("nul\x00", ""),
    ],
)
def test_only_encodings_of_text_are_known(label: str, codec: str) -> None:
    assert known_codec(label) == codec


def test_a_mark_is_no_text() -> None:
    assert to_utf8(codecs.BOM_UTF8 + b"{}").body == b"{}"
