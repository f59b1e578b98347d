"""Whether a feed can be pushed, and by whom."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hub.core.push.hub_offers import marks_of, offer_of
from protocols.feeds import ParseContext, parse
from protocols.model import Feed
from storage.records import PushOffer, PushWay
from tests.support.fetch_targets import START, an_answer

OWN = "https://us.example"
URL = "https://feed.example/feed"


def offered(link: str = "", head: str = "", url: str = URL) -> PushOffer | None:
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'><id>x:1</id>{head}</feed>"
    return offer_of(replace(an_answer(200), link=link), read(body), url, OWN)


def read(body: str) -> Feed:
    return parse(body.encode(), ParseContext(url=URL, now=START)).feed


def cloud(**attributes: str) -> PushOffer | None:
    values = {
        "domain": "cloud.example",
        "port": "5337",
        "path": "/pleaseNotify",
        "protocol": "http-post",
        **attributes,
    }
    element = " ".join(f'{name}="{value}"' for name, value in values.items())
    body = f"<rss version='2.0'><channel><cloud {element}/></channel></rss>"
    return offer_of(an_answer(200), read(body), URL, OWN)


def test_a_feed_without_a_hub_offers_nothing() -> None:
    assert offered() is None


def test_the_header_comes_before_the_document() -> None:
    head = "<link rel='hub' href='https://other.example/'/>"
    offer = offered(
        '<https://hub.example/>; rel="hub", <https://feed.example/self>; rel="self"',
        head + "<link rel='self' href='https://feed.example/document'/>",
    )
    assert offer is not None
    assert (offer.way, offer.hub) == (PushWay.WEBSUB, "https://hub.example/")
    assert offer.topic == "https://feed.example/self"


def test_a_document_may_name_both() -> None:
    offer = offered(
        head="<link rel='hub' href='https://hub.example/'/>"
        "<link rel='self' href='https://feed.example/document#part'/>"
    )
    assert offer is not None
    assert (offer.hub, offer.topic) == (
        "https://hub.example/",
        "https://feed.example/document",
    )
    assert "x:1" in offer.marks


def test_the_topic_is_where_the_feed_is_asked_if_it_names_none() -> None:
    offer = offered('<https://hub.example/>; rel="hub"', url=f"{URL}?a=1#x")
    assert offer is not None
    assert offer.topic == f"{URL}?a=1"


@pytest.mark.parametrize(
    ("hubs", "chosen"),
    [
        (("http://a.example/", "https://b.example/"), "https://b.example/"),
        (("http://a.example/", "http://b.example/"), "http://a.example/"),
        ((f"{OWN}/hub", "http://b.example/"), "http://b.example/"),
        (("HTTPS://US.example:443/elsewhere",), None),
        (("ftp://a.example/", "https://user:word@b.example/"), None),
    ],
)
def test_of_several_hubs_one_is_chosen(
    hubs: tuple[str, ...], chosen: str | None
) -> None:
    offer = offered(", ".join(f'<{hub}>; rel="hub"' for hub in hubs))
    assert (offer.hub if offer else None) == chosen


def test_a_topic_of_this_very_hub_is_not_subscribed_to_elsewhere() -> None:
    link = f'<https://hub.example/>; rel="hub", <{OWN}/topics/1.atom>; rel="self"'
    assert offered(link) is None


@pytest.mark.parametrize(
    ("attributes", "hub"),
    [
        ({}, "http://cloud.example:5337/pleaseNotify"),
        ({"port": "80", "path": "rpc"}, "http://cloud.example/rpc"),
        ({"port": "443"}, "https://cloud.example/pleaseNotify"),
        ({"port": "", "protocol": "HTTPS-POST"}, "https://cloud.example/pleaseNotify"),
        ({"protocol": "xml-rpc"}, None),
        ({"protocol": "http-post", "port": "x"}, None),
        ({"port": "70000"}, None),
        ({"domain": ""}, None),
        ({"domain": "a.example/b"}, None),
        ({"domain": "us.example", "port": "443"}, None),
    ],
)
def test_a_cloud_is_asked_where_it_says(
    attributes: dict[str, str], hub: str | None
) -> None:
    offer = cloud(**attributes)
    if hub is None:
        assert offer is None
    else:
        assert offer is not None
        assert (offer.way, offer.hub, offer.topic) == (PushWay.CLOUD, hub, URL)


LINKS = (
    "<link rel='self' href='http://FEED.example:80/a'/>"
    "<link href='https://feed.example/'/><link rel='hub' href='https://hub.example/'/>"
)


@pytest.mark.parametrize(
    ("head", "marks"),
    [
        (f"<id>x:1</id>{LINKS}", ("x:1", "https://feed.example/a")),
        (LINKS, ("https://feed.example/a",)),
        ("<link href='http://feed.example'/>", ("site https://feed.example/",)),
        (f"<id>x:1</id><link rel='self' href='/{'b' * 3_000}'/>", ("x:1",)),
        ("<title>nothing</title>", ()),
    ],
)
def test_a_document_is_known_by_its_id_and_addresses_or_else_by_its_site(
    head: str, marks: tuple[str, ...]
) -> None:
    document = f"<feed xmlns='http://www.w3.org/2005/Atom'>{head}</feed>"
    assert marks_of(read(document)) == marks


def test_an_offer_remembers_all_that_its_documents_may_be_known_by() -> None:
    offer = offered(head=LINKS)
    assert offer is not None
    assert offer.marks == (
        "x:1",
        "https://feed.example/a",
        "site https://feed.example/",
    )
