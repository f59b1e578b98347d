"""Tags of languages: what feeds write, and what is meant."""

from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.languages import language_tag, reduce_language
from tests.support.creator import a_creator_feed, an_item, read
from tests.support.documents import CONTEXT, atom, rss

# RFC 5646 2.1, without what is grandfathered.
WELL_FORMED = re.compile(
    r"[a-z]{2,3}(-[a-z]{3})?(-[A-Z][a-z]{3})?(-[A-Z]{2}|-[0-9]{3})?"
    r"(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(-[a-wyz0-9](-[a-z0-9]{2,8})+)*"
    r"(-x(-[a-z0-9]{1,8})+)?"
)


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("en", "en"),
        ("EN", "en"),
        (" en-gb\n", "en-GB"),
        ("en_US", "en-US"),
        ("en_US.UTF-8", "en-US"),
        ("de_DE@euro", "de-DE"),
        ("en us", "en-US"),
        ("en, fr", "en"),
        ("fr-FR;q=0.9", "fr-FR"),
        ("english", "en"),
        ("English (US)", "en"),
        ("Deutsch", "de"),
        ("português", "pt"),
        ("Tiếng Việt", "vi"),
        ("english-us", "en-US"),
        ("eng", "en"),
        ("ger-AT", "de-AT"),
        ("iw", "he"),
        ("jp", "ja"),
        ("zh-hans-cn", "zh-Hans-CN"),
        ("zh-yue", "zh-yue"),
        ("sr-latn-rs", "sr-Latn-RS"),
        ("es-419", "es-419"),
        ("de-1996", "de-1996"),
        ("sl-rozaj-biske", "sl-rozaj-biske"),
        ("de-DE-u-co-phonebk", "de-DE-u-co-phonebk"),
        ("en-a-bb-x-a", "en-a-bb-x-a"),
        ("fil", "fil"),
        ("haw-US", "haw-US"),
        ("en-usa", "en"),
        ("en-", "en"),
        ("en-x", "en"),
        ("en--us", "en"),
        ("us", ""),
        ("und", ""),
        ("mul", ""),
        ("x-klingon", ""),
        ("Simlish", ""),
        ("-", ""),
        ("", ""),
    ],
)
def test_a_language_is_a_tag_however_it_is_written(written: str, tag: str) -> None:
    assert language_tag(written) == tag


@given(
    st.text("aen-zx_US19. ,", max_size=30) | st.text(max_size=30) | st.just("e" * 999)
)
def test_what_comes_out_is_a_tag_that_stays_itself(written: str) -> None:
    tag = language_tag(written)
    assert not tag or WELL_FORMED.fullmatch(tag)
    assert language_tag(tag) == tag
    assert re.fullmatch("([a-z]{2}(-[A-Z]{2})?)?", reduce_language(written))


JSON_FEED = {"version": "https://jsonfeed.org/version/1.1", "title": "F"}


def language_of(body: bytes, *, is_broken: bool = False) -> tuple[str, str]:
    """The feed's and its only entry's."""
    parsed = (
        read_with_feedparser(OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT)
        if is_broken
        else parse(body, CONTEXT)
    )
    assert parsed is not None
    [entry] = parsed.entries
    return parsed.feed.language, entry.language


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize(
    ("body", "languages"),
    [
        (
            rss("<item><guid>1</guid></item>", head="<language>english</language>"),
            ("en", "en"),
        ),
        (
            rss("<item><guid>1</guid></item>", head="<language>Simlish</language>"),
            ("", ""),
        ),
        (
            rss(
                '<item xmlns:dc="http://purl.org/dc/elements/1.1/"><guid>1</guid>'
                "<dc:language>de_at</dc:language></item>",
                head="<language>en_US</language>",
            ),
            ("en-US", "de-AT"),
        ),
        (
            atom("<title>F</title><entry><id>1</id><title>T</title></entry>").replace(
                b"<feed ", b'<feed xml:lang="en_us" '
            ),
            ("en-US", "en-US"),
        ),
    ],
    ids=["a name", "none", "Dublin Core", "xml:lang"],
)
def test_feeds_speak_languages_of_bcp47(
    body: bytes, languages: tuple[str, str], *, is_broken: bool
) -> None:
    if is_broken and b"xml:lang" in body:
        assert language_of(body, is_broken=True)[0] in ("", languages[0])
    else:
        assert language_of(body, is_broken=is_broken) == languages


def test_an_attribute_that_names_no_language_takes_none_back() -> None:
    entry = '<entry xml:lang="Simlish"><id>1</id><title>T</title></entry>'
    body = atom(f"<title>F</title>{entry}").replace(b"<feed ", b'<feed xml:lang="de" ')
    assert language_of(body) == ("de", "de")


def test_what_names_no_language_is_kept_as_it_is_written() -> None:
    head = "<language>Simlish</language>"
    assert parse(rss(head=head), CONTEXT).feed.extensions == (
        {"rss": {"language": "Simlish"}}
    )
    body = orjson.dumps({**JSON_FEED, "language": "Simlish", "items": []})
    assert parse(body, CONTEXT).feed.extensions == {"jsonfeed": {"language": "Simlish"}}


def test_json_feeds_speak_them_too() -> None:
    items = [{"id": "1", "language": "de_at"}]
    body = orjson.dumps({**JSON_FEED, "language": "english", "items": items})
    assert language_of(body) == ("en", "de-AT")


def test_and_creators_are_told_of_what_is_none() -> None:
    document = a_creator_feed(an_item("a", language="Simlish"), an_item("b"))
    parsed = read({**document, "creator": {"handle": "m", "language": "EN"}})
    assert [entry.language for entry in parsed.entries] == ["en", "en"]
    assert parsed.problems == ("/items/0/language: expected a language; left out",)
