"""What subscribers who want a site as it is are sent."""

from __future__ import annotations

from storage.packing import unpack_bytes
from storage.records import ANONYMOUS, Format, NewSubscription
from tests.support.openfeeder import FeederSite
from tests.support.site_visits import Reading


async def test_who_wants_a_site_as_it_is_gets_its_newest_pages_as_atom() -> None:
    reading = Reading(site=FeederSite())
    reading.site.add("/old")
    feed = await reading.visit_until_read()
    assert await reading.storage.log.body(feed.id) is None
    for number in range(2):
        new = NewSubscription(
            account=ANONYMOUS,
            topic=feed.url,
            feed_id=feed.id,
            callback=f"https://subscriber.example/{number}",
            format=Format.AS_IS,
        )
        await reading.storage.subscriptions.add(new, reading.clock.now())

    reading.site.add("/new")
    await reading.visit()

    body = await reading.storage.log.body(feed.id)
    assert body is not None
    assert body.content_type == "application/atom+xml"
    document = unpack_bytes(body.body).decode()
    assert document.index("On /new") < document.index("On /old")
    assert 'rel="hub" href="https://hub.example/hub"' in document


async def test_the_first_who_wants_it_may_come_while_the_site_is_read() -> None:
    reading = Reading(site=FeederSite())
    reading.site.add("/old")
    feed = await reading.visit_until_read()
    reading.site.add("/new")
    new = NewSubscription(
        account=ANONYMOUS,
        topic=feed.url,
        feed_id=feed.id,
        callback="https://subscriber.example/",
        format=Format.AS_IS,
    )
    reading.meanwhile = lambda: reading.storage.subscriptions.add(
        new, reading.clock.now()
    )

    await reading.visit()

    body = await reading.storage.log.body(feed.id)
    assert body is not None
    assert b"On /new" in unpack_bytes(body.body)
