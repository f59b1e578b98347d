from __future__ import annotations

from urllib.parse import urlencode

import pytest

from protocols.protocol_errors import InvalidValue
from protocols.websub.websub_parameters import (
    MOST_PUBLISHED,
    HubRequest,
    PublishRequest,
    RefusedUrl,
    SubscribeRequest,
    UnsubscribeRequest,
    read_form,
    read_request,
)

TOPIC = "https://feeds.example/1?a=b"
CALLBACK = "https://reader.example/?k=v"


def request(mode: str = "subscribe", **more: str) -> HubRequest:
    """``hub.`` is put before all names but ``format``."""
    parameters = {"mode": mode, "topic": TOPIC, "callback": CALLBACK, **more}
    named = {
        name if name == "format" else f"hub.{name}": value
        for name, value in parameters.items()
    }
    return read_request(read_form(urlencode(named).encode()))


def publish(*pairs: tuple[str, str]) -> PublishRequest:
    form = read_form(urlencode([("hub.mode", "publish"), *pairs]).encode())
    read = read_request(form)
    assert isinstance(read, PublishRequest)
    return read


def test_a_subscription_has_defaults_for_all_that_is_not_said() -> None:
    assert request() == SubscribeRequest(
        topic=TOPIC,
        callback=CALLBACK,
        lease_seconds=864_000,
        secret="",
        algorithm="sha256",
        format="",
        verify_token="",
    )


def test_a_subscription_says_how_it_wants_to_be_served() -> None:
    assert request(
        secret="s" * 199,
        lease_seconds="3600",
        signature_algorithm="sha512",
        format="atom",
        verify_token="theirs",
        verify="sync",
        anything="else",
    ) == SubscribeRequest(
        topic=TOPIC,
        callback=CALLBACK,
        lease_seconds=3_600,
        secret="s" * 199,
        algorithm="sha512",
        format="atom",
        verify_token="theirs",
    )


def test_empty_parameters_are_absent() -> None:
    assert request(secret="", lease_seconds="", verify_token="") == request()


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ("0", 300),
        ("299", 300),
        ("300", 300),
        ("2592000", 2_592_000),
        ("2592001", 2_592_000),
        ("9" * 4_000, 2_592_000),
        ("0" * 30 + "1", 300),
    ],
)
def test_a_lease_is_cut_to_its_bounds(asked: str, granted: int) -> None:
    read = request(lease_seconds=asked)
    assert isinstance(read, SubscribeRequest)
    assert read.lease_seconds == granted


def test_an_unsubscription_ignores_what_only_subscribing_needs() -> None:
    assert request(
        "unsubscribe",
        lease_seconds="soon",
        secret="s" * 500,
        signature_algorithm="md5",
        format="xml",
        verify_token="theirs",
    ) == UnsubscribeRequest(topic=TOPIC, callback=CALLBACK, verify_token="theirs")


def test_a_part_is_pinged_by_its_url() -> None:
    read = publish(("hub.url", "https://a.example/#.news"))
    assert (read.topics, read.refused) == (("https://a.example/#.news",), ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", ""),
        ("mode", "Subscribe"),
        ("mode", "denied"),
        ("topic", ""),
        ("topic", "feeds.example"),
        ("topic", "ftp://feeds.example/"),
        ("topic", "https:///path"),
        ("topic", "https://feeds.example/#part"),
        ("topic", "https://user:word@feeds.example/"),
        ("topic", "https://feeds.example/" + "x" * 2_048),
        ("callback", ""),
        ("callback", "mailto:a@b.example"),
        ("callback", "https://reader.example/#part"),
        ("callback", "https://reader.example:port/"),
        ("callback", "https://reader.example/\n"[:-1] + "\x00"),
        ("secret", "s" * 200),
        ("secret", "é" * 100),
        ("lease_seconds", "-1"),
        ("lease_seconds", "1.5"),
        ("lease_seconds", "ten"),
        ("lease_seconds", "٣٠٠"),
        ("signature_algorithm", "md5"),
        ("format", "rss"),
        ("verify_token", "t" * 1_025),
    ],
)
def test_the_parameter_at_fault_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        request(**{name: value})
    expected = name if name == "format" else f"hub.{name}"
    assert refusal.value.field == expected
    assert str(refusal.value).startswith(f"{expected}: expected ")


@pytest.mark.parametrize(
    "pairs",
    [
        [("hub.url", "https://a.example/"), ("hub.url", "https://b.example/")],
        [("hub.topic", "https://a.example/"), ("hub.url", "https://b.example/")],
        [("hub.url[]", "https://a.example/"), ("hub.url[]", "https://b.example/")],
        [
            ("hub.topic[0]", "https://a.example/"),
            ("hub.topic[1]", "https://b.example/"),
        ],
        [("hub.url", "https://a.example/,https://b.example/")],
        [("hub.url", " https://a.example/ , https://b.example/ ")],
        [("hub.url", "https://a.example/,https://b.example/,https://a.example/")],
    ],
)
def test_every_form_of_publishing_gives_each_url_once(
    pairs: list[tuple[str, str]],
) -> None:
    assert publish(*pairs).topics == ("https://a.example/", "https://b.example/")


def test_a_comma_inside_a_url_does_not_part_it() -> None:
    assert publish(("hub.url", "https://a.example/?q=1,2")).topics == (
        "https://a.example/?q=1,2",
    )


def test_a_bad_url_does_not_lose_the_good_ones() -> None:
    read = publish(("hub.url", "nonsense"), ("hub.url", "https://a.example/"))
    assert read.topics == ("https://a.example/",)
    (refused,) = read.refused
    assert isinstance(refused, RefusedUrl)
    assert refused.url == "nonsense"
    assert "http" in refused.reason


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("hub.url", "")],
        [("hub.url", "nonsense")],
        [("hub.url", "https://a.example/")] * (MOST_PUBLISHED + 1),
    ],
)
def test_publishing_nothing_or_too_much_is_refused(
    pairs: list[tuple[str, str]],
) -> None:
    with pytest.raises(InvalidValue) as refusal:
        publish(*pairs)
    assert refusal.value.field == "hub.url"
