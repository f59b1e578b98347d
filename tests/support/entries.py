"""Hypothesis strategies: entries, feeds and notifications with everything in them.

``ANY`` text may be as hostile as it likes. What must have a certain form in Atom
(addresses, media types, languages) has it here; what happens otherwise is tested in
`tests/protocols/superfeedr/test_valid_atom.py`.
"""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Deletion,
    Entry,
    Feed,
    Geo,
    Link,
    Notification,
    Status,
    Text,
)

ANY = st.text(max_size=30) | st.text("<>&]\"'[\r\n\t\x00\x1fa\ufffe", max_size=12)
LONG = st.builds(str.__mul__, ANY, st.integers(0, 40))
NAMES = ANY.filter(bool)
DATES = st.none() | st.datetimes(timezones=st.just(UTC))
IRIS = st.sampled_from(
    [
        "https://a.example/",
        "https://a.example/b?c=1&d=2#e",
        "https://m\u00fcller.example/%C3%A4/\u00f6",
        "tag:a.example,2025:1",
        "urn:x-a:b",
    ]
)
TYPES = st.sampled_from(
    ["http://activitystrea.ms/schema/1.0/person", "https://a.example/b/", "note"]
)
LINKS = st.builds(
    Link,
    href=IRIS,
    rel=st.sampled_from(["alternate", "replies", "picture", "image", "enclosure"]),
    type=st.sampled_from(["text/html", "image/png", "audio/mpeg"]),
    title=ANY,
    length=st.none() | st.integers(0, 2**40),
)


def several(one: st.SearchStrategy, most: int = 2) -> st.SearchStrategy:
    return st.lists(one, max_size=most).map(tuple)


def _purpose(link: Link) -> object:
    """What must be unique among the links: Atom allows one alternate of each type."""
    return link.type if link.rel == "alternate" else link


OWN_LINKS = st.lists(LINKS, max_size=4, unique_by=_purpose).map(tuple)
AUTHORS = st.builds(
    Author,
    name=ANY,
    uri=st.just("") | IRIS,
    email=st.sampled_from(["", "a@b.example", "nobody"]),
    id=ANY,
    title=ANY,
    links=several(LINKS),
    object_types=several(TYPES),
)
CATEGORIES = st.builds(Category, term=ANY, scheme=st.just("") | IRIS, label=ANY)
TEXTS = st.builds(Text, value=LONG, type=st.sampled_from(["html", "text"]))
CONTENTS = TEXTS | st.builds(Text, value=LONG, type=st.just("text/markdown"))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(
    allow_nan=False, allow_infinity=False
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3),
    max_leaves=8,
)
DEGREES = st.floats(-90, 90).map(lambda degrees: round(degrees, 9))
EXTENSIONS = st.dictionaries(ANY, JSON, max_size=3)
LANGUAGES = st.sampled_from(["", "en", "de-CH", "zh-Hant-TW"])
OBJECTS = st.builds(
    ActivityObject,
    id=NAMES,
    title=NAMES,
    published=DATES,
    updated=DATES,
    content=st.none() | TEXTS,
    authors=several(AUTHORS, 1),
    links=several(LINKS),
    object_types=several(TYPES),
)
RANKS = st.none() | st.floats(0, 1)
COUNTS = st.none() | st.integers(0, 2**31)
STATUSES = st.builds(
    Status,
    code=st.none() | st.integers(0, 599),
    http=ANY,
    next_fetch=DATES,
    period=COUNTS,
    last_fetch=DATES,
    last_parse=DATES,
    last_maintenance_at=DATES,
    entries_count_since_last_maintenance=COUNTS,
    velocity=RANKS,
    popularity=RANKS,
    porn_rank=RANKS,
    bozo_rank=RANKS,
    generated_ids=st.booleans(),
    title=ANY,
)
FEEDS = st.builds(
    Feed,
    id=ANY,
    title=ANY,
    subtitle=ANY,
    published=DATES,
    updated=DATES,
    links=OWN_LINKS,
    authors=several(AUTHORS),
    contributors=several(AUTHORS, 1),
    categories=several(CATEGORIES),
    language=LANGUAGES,
    rights=ANY,
    generator=ANY,
    icon=st.just("") | IRIS,
    logo=st.just("") | IRIS,
    extensions=EXTENSIONS,
    status=st.none() | STATUSES,
)
ENTRIES = st.builds(
    Entry,
    key=NAMES,
    id=ANY,
    title=ANY,
    summary=st.none() | TEXTS,
    content=st.none() | CONTENTS,
    published=DATES,
    updated=DATES,
    links=OWN_LINKS,
    authors=several(AUTHORS),
    contributors=several(AUTHORS, 1),
    categories=several(CATEGORIES, 3),
    geo=st.none() | st.builds(Geo, latitude=DEGREES, longitude=DEGREES),
    verbs=several(TYPES),
    object_types=several(TYPES),
    objects=several(OBJECTS),
    language=LANGUAGES,
    rights=ANY,
    source=st.none() | FEEDS,
    extensions=EXTENSIONS,
)
NOTIFICATIONS = st.builds(
    Notification,
    topic=IRIS,
    hub=st.just("https://hub.example/hub"),
    status=STATUSES,
    feed=FEEDS,
    entries=st.none() | several(ENTRIES),
    deletions=several(st.builds(Deletion, key=NAMES, id=ANY, at=DATES)),
    is_digest=st.booleans(),
)
