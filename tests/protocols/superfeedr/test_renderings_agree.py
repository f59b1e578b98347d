"""Whatever an entry says, Atom and JSON say the same of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from protocols.model import (
    Author,
    Category,
    Entry,
    Feed,
    Geo,
    Link,
    Notification,
    Status,
    Text,
)
from protocols.superfeedr.atom import render_atom
from protocols.superfeedr.json import render_json
from tests.support.xml import (
    LANGUAGE,
    attributes,
    find,
    read_extensions,
    read_xml,
    texts,
)

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
ANY = st.text(max_size=30) | st.text("<>&]\"'[\r\n\t\x00a", max_size=12)
DATES = st.none() | st.datetimes(timezones=st.just(UTC))
LINKS = st.builds(
    Link,
    href=ANY,
    rel=st.sampled_from(["alternate", "replies", "picture"]),
    type=st.sampled_from(["text/html", "image/png"]),
    title=ANY,
    length=st.none() | st.integers(0, 2**40),
)
AUTHORS = st.builds(Author, name=ANY, uri=ANY, id=ANY, title=ANY)
TEXTS = st.builds(
    Text, value=ANY, type=st.sampled_from(["html", "text", "text/markdown"])
)
XHTML = st.builds(Text, value=ANY, type=st.just("xhtml"))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(
    allow_nan=False, allow_infinity=False
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.builds(
    Entry,
    key=ANY,
    id=ANY,
    title=ANY,
    summary=st.none() | TEXTS,
    content=st.none() | TEXTS,
    published=DATES,
    updated=DATES,
    links=st.lists(LINKS, max_size=4).map(tuple),
    authors=st.lists(AUTHORS, max_size=2).map(tuple),
    categories=st.lists(st.builds(Category, term=ANY), max_size=3).map(tuple),
    geo=st.none()
    | st.builds(Geo, latitude=st.floats(-90, 90), longitude=st.floats(-180, 180)),
    language=ANY,
    extensions=st.dictionaries(ANY, JSON, max_size=3),
)


def rendered(entry: Entry) -> tuple[Any, Any]:
    notification = Notification(
        topic="https://site.example/feed",
        hub="https://hub.example/hub",
        status=Status(),
        feed=Feed(updated=datetime(2025, 1, 1, tzinfo=UTC)),
        entries=(entry,),
    )
    [element] = find(read_xml(render_atom(notification)), "atom:entry")
    [item] = orjson.loads(render_json(notification))["items"]
    return element, item


def allowed(value: Any) -> Any:
    """As XML can carry it: without the characters it forbids."""
    if isinstance(value, str):
        return FORBIDDEN.sub("", value)
    if isinstance(value, list):
        return [allowed(each) for each in value]
    if isinstance(value, dict):
        return {allowed(name): allowed(each) for name, each in value.items()}
    return value


def seconds(element: Any, path: str) -> list[int]:
    moments = [datetime.fromisoformat(text) for text in texts(element, path)]
    return [int((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() // 1)
            for at in moments]  # fmt: skip


def present(item: Any, key: str) -> list[Any]:
    return [item[key]] if key in item else []


@given(ENTRIES)
def test_texts_and_dates_agree(entry: Entry) -> None:
    element, item = rendered(entry)
    item = allowed(item)
    for name in ("id", "title", "summary", "content"):
        assert texts(element, f"atom:{name}") == present(item, name)
    assert seconds(element, "atom:published") == present(item, "published")
    if "updated" in item:
        assert seconds(element, "atom:updated") == [item["updated"]]
    assert element.get(LANGUAGE, "") == item.get("language", "")


@given(ENTRIES)
def test_links_people_and_places_agree(entry: Entry) -> None:
    element, item = rendered(entry)
    item = allowed(item)
    links: dict[str, list[dict[str, Any]]] = {}
    for link in attributes(element, "atom:link"):
        length = {"length": int(link["length"])} if "length" in link else {}
        links.setdefault(link["rel"], []).append({**link, **length})
    assert links == item.get("standardLinks", {})
    assert texts(element, "atom:author/atom:name")[:1] == [
        actor.get("displayName", "") for actor in present(item, "actor")
    ]
    terms = [each["term"] for each in attributes(element, "atom:category")]
    assert terms == item.get("categories", [])
    assert [
        [float(number) for number in point.split()]
        for point in texts(element, "geo:point")
    ] == [geo["coordinates"] for geo in present(item, "geo")]


OF_JSON_ONLY = {"authors", "contentType", "summaryType"}


@given(ENTRIES.filter(lambda entry: not OF_JSON_ONLY & {*entry.extensions}))
def test_extensions_agree(entry: Entry) -> None:
    element, item = rendered(entry)
    extensions = item.get("extensions", {}).items()
    common = {key: value for key, value in extensions if key not in OF_JSON_ONLY}
    assert allowed(read_extensions(element)) == allowed(common)


@given(XHTML)
def test_whatever_claims_to_be_xhtml_leaves_the_document_well_formed(
    text: Text,
) -> None:
    element, item = rendered(Entry(key="1", id="1", content=text))
    assert item["content"] == text.value
    assert len(find(element, "atom:content")) == 1
