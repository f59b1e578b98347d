from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import InvalidValue
from protocols.websub.callbacks import LONGEST_URL, read_callback, read_web_url


@pytest.mark.parametrize(
    "url",
    [
        "https://reader.example/callback?id=7&x=%7E",
        "http://reader.example",
        "HTTPS://Reader.Example:8443/",
        "http://[2001:db8::1]/cb",
        "https://b\u00fccher.example/cb",
        "https://reader.example/" + "a" * (LONGEST_URL - 23),
    ],
)
def test_a_callback_is_taken_exactly_as_given(url: str) -> None:
    assert read_callback(url) == url


def test_surrounding_blanks_are_dropped() -> None:
    assert read_callback(" https://reader.example/cb\n") == "https://reader.example/cb"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "an absolute http or https URL"),
        ("reader.example/cb", "an absolute http or https URL"),
        ("/cb", "an absolute http or https URL"),
        ("ftp://reader.example/cb", "an absolute http or https URL"),
        ("javascript:alert(1)", "an absolute http or https URL"),
        ("https://", "an absolute http or https URL"),
        ("https:///cb", "an absolute http or https URL"),
        ("https://reader.example:port/", "an absolute http or https URL"),
        ("https://reader.example:99999/", "an absolute http or https URL"),
        ("https://reader.example:0/", "an absolute http or https URL"),
        ("https://[half/", "an absolute http or https URL"),
        ("https://reader.example/a b", "without blanks"),
        ("https://reader.example/a\tb", "without blanks"),
        ("https://reader.example/a\r\nHost: x", "without blanks"),
        ("https://reader.example/\x00", "without blanks"),
        ("https://reader.example/\u00a0b", "without blanks"),
        ("https://good.example\\@evil.example/", "without blanks or backslashes"),
        ("https://user@reader.example/", "without user name and password"),
        ("https://user:hunter2@reader.example/", "without user name and password"),
        ("https://reader.example/cb#top", "without a fragment"),
        ("https://reader.example/cb#", "without a fragment"),
        ("https://reader.example/" + "a" * LONGEST_URL, "at most 2048 characters"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(
    url: str, expected: str
) -> None:
    with pytest.raises(InvalidValue, match=expected) as refused:
        read_callback(url)
    assert refused.value.field == "callback"


@pytest.mark.parametrize(
    "url", ["https://user:hunter2@reader.example/", "ftp://user:hunter2@x.example/"]
)
def test_a_password_is_never_shown(url: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_callback(url)
    assert "hunter2" not in str(refused.value)


def test_a_topic_may_have_a_fragment() -> None:
    url = "https://site.example/page#.h-entry"
    assert read_web_url(url, "hub.topic") == url


@given(st.text(max_size=60))
def test_whatever_is_sent_is_a_url_or_an_invalid_value(text: str) -> None:
    with suppress(InvalidValue):
        assert read_web_url("http:" + text, "hub.topic").startswith("http://")
