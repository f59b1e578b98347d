"""A notification with everything that the Superfeedr schema documents.

It has two types for each author and object, two verbs, two people, and links of every
kind: enough to see which of several the JSON form takes.
"""

from __future__ import annotations

from datetime import UTC, datetime

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

TYPES = "http://activitystrea.ms/schema/1.0"

FIRST_AUTHOR = Author(
    name="Ada",
    uri="http://garden.example/ada",
    email="ada@garden.example",
    id="id-ada",
    title="Gardener",
    object_types=(f"{TYPES}/person", f"{TYPES}/gardener"),
    links=(
        Link(
            href="http://garden.example/ada.png",
            rel="picture",
            type="image/png",
            title="Ada among roses",
        ),
        Link(href="http://garden.example/ada/profile", title="Ada's page"),
    ),
)
SECOND_AUTHOR = Author(name="Bj\u00f6rn K.", uri="http://garden.example/b")

PLACE = ActivityObject(
    object_types=("http://places.example/spot", f"{TYPES}/place"),
    id="place-9",
    title="The rose bed",
    published=datetime(2025, 5, 1, 13, 0, 40, tzinfo=UTC),
    updated=datetime(2025, 5, 2, 12, 0, 40, tzinfo=UTC),
    content=Text(value="south of the shed", type="text"),
    authors=(SECOND_AUTHOR,),
    categories=(Category(term="beds"),),
    links=(
        Link(href="http://garden.example/places/9"),
        Link(href="http://garden.example/places/9/map"),
    ),
)

SOURCE = Feed(
    id="tag:garden.example,2025:roses",
    title="Roses only",
    published=datetime(2025, 4, 30, tzinfo=UTC),
    updated=datetime(2025, 5, 2, 12, 0, 40, tzinfo=UTC),
    links=(
        Link(href="http://garden.example/roses", title="Roses"),
        Link(
            href="http://garden.example/roses.xml",
            rel="self",
            type="application/rss+xml",
        ),
    ),
)

FULL_ENTRY = Entry(
    key="garden.example:25/05/02-1",
    id="garden.example:25/05/02-1",
    title="Roses & thorns, <i>live</i>",
    summary=Text(value="First buds \u2026", type="text"),
    content=Text(value='<p title="a">First buds &amp; leaves</p>'),
    published=datetime(2025, 5, 2, 6, 19, 31, tzinfo=UTC),
    updated=datetime(2025, 5, 2, 7, 0, 0, tzinfo=UTC),
    links=(
        Link(href="http://garden.example/entries/1"),
        Link(
            href="http://garden.example/entries/1.xml",
            rel="replies",
            type="application/atom+xml",
        ),
        Link(
            href="http://garden.example/1.png?a=1&b=2",
            rel="picture",
            type="image/png",
            title='"Ros\u00e9"',
        ),
        Link(
            href="http://garden.example/1.mp3",
            rel="enclosure",
            type="audio/mpeg",
            length=1024,
        ),
    ),
    authors=(FIRST_AUTHOR, SECOND_AUTHOR),
    contributors=(Author(name="Cy"),),
    categories=(
        Category(term="Flowers"),
        Category(term="roses", scheme="http://garden.example/terms", label="Roses"),
    ),
    geo=Geo(latitude=47.597553, longitude=-122.15925),
    verbs=(f"{TYPES}/post", f"{TYPES}/publish"),
    object_types=(f"{TYPES}/note",),
    objects=(PLACE, ActivityObject(title="A spade")),
    language="en",
    rights="\u00a9 Ada",
    source=SOURCE,
    extensions={"itunes": {"duration": "12:30", "explicit": False}, "tags": ["a", 1]},
)
PLAIN_ENTRY = Entry(
    key="2",
    id="http://garden.example/entries/2",
    title="A plain one",
    published=datetime(2025, 5, 2, 5, 0, 0, tzinfo=UTC),
    authors=(Author(name="Bj\u00f6rn K."),),
)

FEED = Feed(
    title="A wonderful garden",
    subtitle="What grows",
    updated=datetime(2025, 5, 2, 6, 19, 31, tzinfo=UTC),
    links=(
        Link(href="http://garden.example/", title="A wonderful garden"),
        Link(href="http://hub.example/", rel="hub"),
        Link(
            href="http://garden.example/feed.xml",
            rel="self",
            type="application/rss+xml",
        ),
    ),
    authors=(SECOND_AUTHOR,),
    categories=(Category(term="garden"),),
    language="en-GB",
    rights="free",
    generator="Trowel 2",
    icon="http://garden.example/icon.png",
    logo="http://garden.example/logo.png",
    extensions={"sy": {"updatePeriod": "daily"}},
)

STATUS = Status(
    code=200,
    http="Fetched (ring) 200 900 and parsed 2/20 entries",
    next_fetch=datetime(2025, 5, 2, 6, 34, 40, 500_000, tzinfo=UTC),
    period=900,
    last_fetch=datetime(2025, 5, 2, 6, 19, 40, tzinfo=UTC),
    last_parse=datetime(2025, 5, 2, 6, 19, 40, tzinfo=UTC),
    last_maintenance_at=datetime(2025, 5, 1, 22, 0, 0, tzinfo=UTC),
    entries_count_since_last_maintenance=5,
    velocity=12.5,
    popularity=0.97,
    porn_rank=0.0,
    bozo_rank=0.1,
    generated_ids=True,
    title="A wonderful garden",
)

EXAMPLE = Notification(
    topic="http://garden.example/feed.xml?a=1&b=2",
    hub="http://hub.example/",
    status=STATUS,
    feed=FEED,
    entries=(FULL_ENTRY, PLAIN_ENTRY),
    deletions=(
        Deletion(
            key="3",
            id="http://garden.example/entries/3",
            at=datetime(2025, 5, 2, 6, 0, 0, tzinfo=UTC),
        ),
    ),
    updated_keys=frozenset({"2"}),
)

TROUBLE = Notification(
    topic="http://garden.example/feed.xml",
    hub="http://hub.example/",
    status=Status(code=0, http="Fetched (ring) 0 3600: no such host", period=3_600),
    feed=Feed(),
)
"""A status without entries, of a feed that could never be read."""
