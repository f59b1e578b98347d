from __future__ import annotations

import codecs
import re

import pytest

from protocols.feeds import parse
from protocols.feeds.text_encoding import known_codec, mend_utf8, to_utf8
from tests.support.documents import CONTEXT, context

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
        ("Déjà", "utf-8", "utf-16", ""),
        ("Déjà", "utf-8", "UTF-32", "text/xml; charset=utf-16"),
        ("Déjà", "cp1252", "windows-1252", "text/xml; charset=utf-16"),
        # labels that Python does not know
        ("日本", "shift_jis", "x-sjis", ""),
        ("中文", "gb18030", "x-gbk", ""),
        ("中文", "big5", "x-x-big5", ""),
        ("Мир", "cp1251", "win-1251", ""),
        ("Мир", "mac-cyrillic", "x-mac-cyrillic", ""),
        ("Déjà", "utf-8", "utf8mb4", ""),
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


STRAY = "Größe, naïve «мир», 日本"


@pytest.mark.parametrize(
    ("declared", "content_type", "stray", "read"),
    [
        ("ISO-8859-1", "", b"\xe9", "é"),
        ("windows-1251", "", b"\xe9", "й"),
        ("", "text/xml; charset=iso-8859-1", b"\x93", "“"),
        ("utf-8", "text/xml; charset=iso-8859-1", b"\xe9", "é"),
        ("EUC-JP", "text/xml; charset=utf-8", b"\xe9", "é"),
        ("windows-1252", "", b"\x81", "\ufffd"),
    ],
)
def test_one_stray_byte_spoils_no_other_character(
    declared: str, content_type: str, stray: bytes, read: str
) -> None:
    body = document(f"{STRAY} |", declared).encode().replace(b"|", stray)
    parsed = parse(body, context(content_type=content_type))
    assert (parsed.feed.title, parsed.path) == (f"{STRAY} {read}", "bytes")
    assert parsed.problems[0].startswith("bytes that are not utf-8 were read as ")


def test_one_stray_byte_after_a_mark_spoils_nothing() -> None:
    body = document(f"{STRAY} |").encode().replace(b"|", b"\xe9")
    assert parse(codecs.BOM_UTF8 + body, CONTEXT).feed.title == f"{STRAY} é"


def test_some_sequences_that_look_like_utf8_do_not_make_latin1_that() -> None:
    body = document("été, où, déjà: Ã©", "iso-8859-1").encode("iso-8859-1")
    assert parse(body, CONTEXT).feed.title == "été, où, déjà: Ã©"


def test_a_word_that_is_not_utf8_twice_leaves_no_other_as_it_is() -> None:
    twice = "déjà vu, où? ".encode().decode("latin-1") * 10
    parsed = parse(document(f"{twice}日本").encode(), CONTEXT)
    assert parsed.feed.title == f"{'déjà vu, où? ' * 10}日本"


def test_a_single_byte_claim_with_undefined_bytes_still_reads() -> None:
    body = document("a").encode().replace(b">a<", b">\x81\xe9<")
    utf8 = to_utf8(body, "text/xml; charset=windows-1252")
    assert utf8.body.decode().count("\ufffd") == 1
    assert utf8.problem == "bytes that are not cp1252 were replaced"


def test_utf8_with_windows_bytes_in_it_is_mended() -> None:
    body = "Déjà où ".encode() + b"\x93vu\x94 \x81"
    assert mend_utf8(body) == ("Déjà où “vu” \ufffd", "cp1252")


GUESSABLE = [
    ("ja", "日本のニュース速報です。東京でカンファレンスが開かれました", "euc_jp"),
    ("ja", "日本のニュース速報です。東京でカンファレンスが開かれました", "cp932"),
    ("zh", "北京时间今天上午国家新闻出版总署发布了最新的通知", "gb18030"),
    ("zh", "台北今天上午舉行記者會說明最新的經濟發展情況", "big5"),
    ("ko", "서울에서 오늘 열린 회의에서 새로운 정책이 발표되었다", "cp949"),
    ("ru", "Новости: сегодня прошла встреча министров", "cp1251"),
    ("ru", "Новости: сегодня прошла встреча министров", "koi8-r"),
    ("he", "חדשות היום בישראל: ראש הממשלה נפגש", "cp1255"),
    ("th", "ข่าววันนี้กรุงเทพมหานคร รัฐบาลไทย", "cp874"),
    ("fr", "Été à la plage, où êtes-vous?", "cp1252"),
    ("de", "Größe, Öl und Übermut", "cp1252"),
]


@pytest.mark.parametrize(("language", "title", "codec"), GUESSABLE)
@pytest.mark.parametrize("says", [True, False], ids=["says its language", "does not"])
def test_an_encoding_that_nothing_names_is_guessed(
    language: str, title: str, codec: str, says: bool
) -> None:
    said = f"<language>{language}</language>" if says else ""
    body = document(title).replace("<title>", f"{said}<title>").encode(codec)
    parsed = parse(body, CONTEXT)
    assert (parsed.feed.title, parsed.path) == (title, "bytes")
    name = codec.replace("cp125", "Windows-125")
    assert parsed.problems[0].endswith(f": read as {name}")


def test_a_guess_begins_where_the_bytes_do() -> None:
    title = "x" * 100_000 + "Déjà vu"
    assert parse(document(title).encode("cp1252"), CONTEXT).feed.title == title


@pytest.mark.parametrize(
    ("language", "title", "codec"),
    [
        ("pl", "Zażółć gęślą jaźń", "cp1250"),
        ("el", "Νέα από την Αθήνα", "cp1253"),
        ("tr", "Şişli, İstanbul", "cp1254"),
    ],
)
def test_a_language_tells_encodings_that_look_alike(
    language: str, title: str, codec: str
) -> None:
    text = f'<rss><channel xml:lang="{language}"><title>{title}</title></channel></rss>'
    assert parse(text.encode(codec), CONTEXT).feed.title == title


@pytest.mark.parametrize("title", ["Déjà vu", "“It\u2019s 5 €”", "a\u00a0b", "日本"])
def test_text_that_is_utf8_twice_is_decoded_twice(title: str) -> None:
    twice = document(title).encode().decode("cp1252", "surrogateescape")
    twice = re.sub("[\udc80-\udcff]", lambda each: chr(ord(each[0]) - 0xDC00), twice)
    parsed = parse(twice.encode(), CONTEXT)
    assert (parsed.feed.title, parsed.path) == (title, "bytes")
    assert parsed.problems == ("the text was encoded as UTF-8 twice",)


@pytest.mark.parametrize("title", ["Ã© and é", "Âge", "Ã", "Ã© and 日本"])
def test_text_that_only_looks_like_utf8_twice_is_left_alone(title: str) -> None:
    parsed = parse(document(title).encode(), CONTEXT)
    assert (parsed.feed.title, parsed.path) == (title, "strict")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("don\x92t \x80 \x9f", "don\u2019t € Ÿ"),
        ("don&#146;t &#0146; &#x92; &#X93;", "don\u2019t \u2019 \u2019 “"),
        ("<![CDATA[don&#146;t]]>", "don\u2019t"),
        ("\x81", "\x81"),  # nothing in Windows-1252 either
        ("&#129;&#x8D;", "\x81\x8d"),
        ("a&#160;&#127;&#1460;&#8217;", "a\xa0\x7f\u05b4\u2019"),
    ],
)
def test_control_characters_are_the_ones_of_windows(written: str, title: str) -> None:
    assert parse(document(written).encode(), CONTEXT).feed.title == title


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


def test_json_in_another_encoding_is_read_if_the_server_names_it() -> None:
    version = "https://jsonfeed.org/version/1.1"
    body = f'{{"version": "{version}", "title": "\xe9", "items": []}}'.encode("latin-1")
    named = context(content_type="application/json; charset=iso-8859-1")
    assert parse(body, named).feed.title == "\xe9"
