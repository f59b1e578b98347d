from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec import structs

from protocols.model import Author, Entry, Feed, Link, Text
from protocols.openfeeder.write.content_queries import AuthorDisplay, PageType
from protocols.openfeeder.write.page_chunks import PageSetting, page_of

UPDATED = datetime(2026, 3, 1, tzinfo=UTC)
SETTING = PageSetting(
    url="https://example.org/a", updated=UPDATED, feed=Feed(), language="en"
)


def a_bare_entry(**members: object) -> Entry:
    return Entry(key="k", id="i", **members)  # type: ignore[arg-type]


def test_an_entry_that_says_nothing_is_a_page_all_the_same() -> None:
    page = page_of(a_bare_entry(), SETTING)
    assert page.facts.title == page.facts.summary == SETTING.url
    assert [each.text for each in page.chunks] == [SETTING.url]
    assert page.facts.author == ""
    assert page.facts.published is None


def test_a_title_that_is_missing_is_made_of_the_text() -> None:
    page = page_of(a_bare_entry(content=Text(value=f"<p>{'word ' * 40}</p>")), SETTING)
    assert page.facts.title == ("word " * 16).strip()


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One. Two! Three? Four.", "One. Two! Three?"),
        ("Version 1.5 is here. Get it", "Version 1.5 is here."),
        ("no end", "no end"),
        (f"Short. {'x' * 300}. End.", "Short."),
        (f"{'word ' * 80}.", ("word " * 60).strip()),
    ],
)
def test_a_summary_is_up_to_three_sentences(text: str, summary: str) -> None:
    page = page_of(
        a_bare_entry(title="T", content=Text(value=f"<p>{text}</p>")), SETTING
    )
    assert page.facts.summary == summary


def test_the_entrys_own_summary_comes_first_and_is_no_chunk_beside_content() -> None:
    entry = a_bare_entry(
        title="T",
        summary=Text(value="<h2>Head</h2><p>Said.</p>"),
        content=Text(value="<p>Told.</p>"),
    )
    page = page_of(entry, SETTING)
    assert page.facts.summary == "Said."
    assert [each.text for each in page.chunks] == ["Told."]
    alone = page_of(structs.replace(entry, content=None), SETTING)
    assert [each.text for each in alone.chunks] == ["Head", "Said."]
    heads = page_of(a_bare_entry(content=Text(value="<h1>Only</h1>")), SETTING)
    assert heads.facts.summary == "Only"


@pytest.mark.parametrize(
    ("authors", "of_feed", "shown"),
    [
        ((Author(name="Ann", email="a@b.example"),), (), "Ann"),
        ((Author(name="ann@b.example (Ann)"),), (), "Ann"),
        ((Author(name="Ann <ann@b.example>"),), (), "Ann"),
        ((Author(name="ann@b.example"),), (Author(name="Bob"),), "Bob"),
        ((Author(email="ann@b.example"),), (), ""),
        ((Author(name="Ann " + "a" * 1_000_000),), (), "Ann"),
        ((Author(name=f"Ann {'b' * 190}@c.example"),), (), "Ann"),
    ],
)
def test_names_of_authors_are_shown_and_no_addresses(
    authors: tuple[Author, ...], of_feed: tuple[Author, ...], shown: str
) -> None:
    setting = replace(SETTING, feed=Feed(authors=of_feed))
    entry = a_bare_entry(authors=authors)
    assert page_of(entry, setting).facts.author == shown
    hidden = replace(setting, authors=AuthorDisplay.HIDDEN)
    assert page_of(entry, hidden).facts.author == ""


@pytest.mark.parametrize(
    ("own", "of_feed", "shown"),
    [
        ("de-Latn-CH", "en", "de-Latn-CH"),
        ("", "fr_FR", "fr-FR"),
        ("nonsense tag", "", "en"),
        ("x", "pt", "pt"),
    ],
)
def test_languages_are_tags_as_they_stand(own: str, of_feed: str, shown: str) -> None:
    setting = replace(SETTING, feed=Feed(language=of_feed))
    assert page_of(a_bare_entry(language=own), setting).facts.language == shown


@pytest.mark.parametrize(
    ("link", "type"),
    [
        (Link(href="https://a.b/c", rel="enclosure", type="audio/mpeg"), "audio"),
        (Link(href="https://a.b/c", rel="enclosure", type="video/mp4"), "video"),
        (Link(href="https://a.b/c", rel="enclosure", type="image/png"), "post"),
        (Link(href="https://a.b/c", rel="related", type="audio/mpeg"), "post"),
    ],
)
def test_the_type_of_a_page_is_that_of_its_enclosure(link: Link, type: str) -> None:
    facts = page_of(a_bare_entry(links=(link,)), SETTING).facts
    assert facts.type is PageType(type)
