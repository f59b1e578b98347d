"""What is said of each message of WebSub, by the section that says so."""

from __future__ import annotations

import pytest

from protocols.websub.exchange_review import (
    Remark,
    TopicLinks,
    check_signature,
    links_of_topic,
    review_acknowledgement,
    review_confirmation,
    review_hub_answer,
    review_hub_request,
    review_notification,
    review_question,
    review_topic,
)
from protocols.websub.signatures import sign

TOPIC = "https://site.example/feed"
HUB = "https://hub.example/"
BOTH = f'<{HUB}>; rel="hub", <{TOPIC}>; rel="self"'
ATOM = (
    b'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="/hub"/>'
    b'<link rel="self" href="https://site.example/feed"/>'
    b'<entry><link rel="hub" href="https://evil.example/"/></entry></feed>'
)
RSS = (
    b'<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
    b'<atom:link rel="hub" href="https://hub.example/"/></channel></rss>'
)
PAGE = (
    b'<!doctype html><head><link rel="hub" href="https://hub.example/">'
    b'</head><body><link rel="hub" href="https://evil.example/">'
)


def told(remarks: tuple[Remark, ...]) -> list[tuple[str, str]]:
    """The level of each, and where WebSub says it."""
    return [(str(each.level), each.section) for each in remarks]


def words(remarks: tuple[Remark, ...]) -> str:
    return "; ".join(each.text for each in remarks)


@pytest.mark.parametrize(
    ("headers", "body", "links"),
    [
        (
            {"link": BOTH},
            ATOM,
            TopicLinks(hubs=(HUB,), selves=(TOPIC,), is_header=True),
        ),
        ({}, ATOM, TopicLinks(hubs=("https://site.example/hub",), selves=(TOPIC,))),
        ({"content-type": "text/xml"}, b" " + RSS, TopicLinks(hubs=(HUB,))),
        ({"content-type": "text/html"}, PAGE, TopicLinks(hubs=(HUB,))),
        ({}, b"<?xml version='1.0'?><!DOCTYPE a><link rel='hub'>", TopicLinks()),
        ({"link": '<https://a.example/>; rel="next"'}, b"", TopicLinks()),
        ({"content-type": "text/xml"}, b"", TopicLinks()),
        ({}, b"<rss", TopicLinks()),
    ],
)
def test_links_are_taken_from_the_header_or_else_the_document(
    headers: dict[str, str], body: bytes, links: TopicLinks
) -> None:
    assert links_of_topic(TOPIC, headers, body) == links


GOOD = TopicLinks(hubs=(HUB,), selves=(TOPIC,), is_header=True)


@pytest.mark.parametrize(
    ("status", "links", "expected"),
    [
        (301, GOOD, [("note", "")]),
        (404, GOOD, [("bad", "4")]),
        (200, GOOD, [("good", "4"), ("good", "4")]),
        (200, TopicLinks(), [("bad", "4"), ("bad", "4")]),
        (
            200,
            TopicLinks(hubs=(HUB,), selves=(TOPIC,)),
            [("good", "4"), ("good", "4"), ("note", "4")],
        ),
        (
            200,
            TopicLinks(hubs=(HUB,), selves=("https://a.example/",), is_header=True),
            [("good", "4"), ("note", "4")],
        ),
        (
            200,
            TopicLinks(hubs=(HUB,), selves=(TOPIC, HUB), is_header=True),
            [("good", "4"), ("bad", "4")],
        ),
    ],
)
def test_a_topic_names_a_hub_and_itself(
    status: int, links: TopicLinks, expected: list[tuple[str, str]]
) -> None:
    assert told(review_topic(TOPIC, status, links)) == expected


REQUEST = {
    "hub.mode": "subscribe",
    "hub.topic": TOPIC,
    "hub.callback": "https://you.example/hook",
    "hub.secret": "secret",
    "hub.lease_seconds": "60",
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"hub.topic": "", "hub.mode": ""}, [("bad", "5.1"), ("bad", "5.1")]),
        ({"hub.secret": "ä" * 100}, [("bad", "5.1")]),
        ({"hub.lease_seconds": "0"}, [("bad", "5.1")]),
        ({"hub.lease_seconds": "soon"}, [("bad", "5.1")]),
        ({"hub.lease_seconds": "²"}, [("bad", "5.1")]),
        ({"hub.mode": "publish", "hub.callback": ""}, []),
    ],
)
def test_a_request_has_what_a_hub_needs(
    changes: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert told(review_hub_request(HUB, {**REQUEST, **changes})) == expected


def test_a_secret_is_for_https() -> None:
    plain = "http://hub.example/"
    assert told(review_hub_request(plain, REQUEST)) == [("note", "5.1")]
    without = {**REQUEST, "hub.secret": ""}
    assert review_hub_request(plain, without) == ()


PLAIN = {"content-type": "text/plain; charset=utf-8"}


@pytest.mark.parametrize(
    ("mode", "status", "headers", "expected"),
    [
        ("subscribe", 202, {}, [("good", "5.1.2")]),
        ("subscribe", 204, {}, [("bad", "5.1.2")]),
        ("subscribe", 307, {"location": HUB}, [("note", "5.1")]),
        ("unsubscribe", 308, {}, [("bad", "5.1")]),
        ("subscribe", 400, PLAIN, [("bad", "5.1.2")]),
        ("subscribe", 500, {}, [("bad", "5.1.2"), ("note", "5.1.2")]),
        ("publish", 204, {}, [("good", "6")]),
        ("publish", 400, {}, [("bad", "6")]),
    ],
)
def test_a_hub_accepts_with_202_whatever_comes_of_it(
    mode: str, status: int, headers: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert told(review_hub_answer(mode, status, headers)) == expected


QUESTION = {
    "hub.mode": "subscribe",
    "hub.topic": TOPIC,
    "hub.challenge": "abc",
    "hub.lease_seconds": "60",
}


@pytest.mark.parametrize(
    ("changes", "topic", "levels"),
    [
        ({}, TOPIC, ["good", "good", "note"]),
        ({}, "", ["good", "good", "note"]),
        ({}, "https://other.example/", ["bad", "good", "note"]),
        ({"hub.topic": ""}, TOPIC, ["bad", "good", "note"]),
        ({"hub.challenge": ""}, TOPIC, ["good", "bad", "note"]),
        ({"hub.challenge": "<b>"}, TOPIC, ["good", "bad", "note"]),
        ({"hub.lease_seconds": ""}, TOPIC, ["good", "good", "bad"]),
        ({"hub.mode": "unsubscribe"}, TOPIC, ["good", "good"]),
        ({"hub.mode": "denied"}, TOPIC, ["good", "note"]),
        ({"hub.mode": "other"}, TOPIC, ["bad"]),
    ],
)
def test_a_hub_asks_with_topic_challenge_and_lease(
    changes: dict[str, str], topic: str, levels: list[str]
) -> None:
    found = review_question({**QUESTION, **changes}, topic)
    assert [str(each.level) for each in found] == levels


def test_a_denial_tells_its_reason() -> None:
    denial = {"hub.mode": "denied", "hub.topic": TOPIC, "hub.reason": "closed"}
    assert "closed" in words(review_question(denial, TOPIC))


SAFE = {
    "content-type": "application/octet-stream",
    "x-content-type-options": "nosniff",
}


@pytest.mark.parametrize(
    ("mode", "status", "headers", "body", "expected"),
    [
        ("subscribe", 200, SAFE, b"abc", [("good", "5.3.1")]),
        ("subscribe", 302, SAFE, b"abc", [("bad", "5.3")]),
        ("subscribe", 404, SAFE, b"abc", [("bad", "5.3.1")]),
        ("subscribe", 200, SAFE, b"abc\n", [("bad", "5.3.1")]),
        ("subscribe", 200, SAFE, b"", [("bad", "5.3.1")]),
        ("subscribe", 200, SAFE, b"<abc>", [("bad", "5.3.1")]),
        ("subscribe", 200, SAFE, b"other", [("bad", "5.3.1")]),
        (
            "subscribe",
            200,
            {**SAFE, "content-type": "text/html; charset=utf-8"},
            b"abc",
            [("good", "5.3.1"), ("bad", "5.3.1")],
        ),
        (
            "subscribe",
            200,
            {"content-type": "text/plain"},
            b"abc",
            [("good", "5.3.1"), ("bad", "5.3.1")],
        ),
        ("denied", 404, {}, b"", [("note", "5.2")]),
    ],
)
def test_a_callback_confirms_by_the_very_challenge_safely(
    mode: str,
    status: int,
    headers: dict[str, str],
    body: bytes,
    expected: list[tuple[str, str]],
) -> None:
    found = review_confirmation(mode, status, headers, body, "abc")
    assert told(found) == expected


def test_blanks_around_a_challenge_are_told_apart_from_another_text() -> None:
    blanks = words(review_confirmation("subscribe", 200, SAFE, b"abc\r\n", "abc"))
    assert "line breaks around it" in blanks


NOTIFICATION = {"content-type": "application/atom+xml", "link": BOTH}


@pytest.mark.parametrize(
    ("headers", "secret", "levels"),
    [
        (NOTIFICATION, "", ["good", "good", "good", "note"]),
        ({}, "", ["bad", "bad", "bad", "note"]),
        (
            {**NOTIFICATION, "link": f'<{HUB}>; rel="hub", <{HUB}>; rel="self"'},
            "",
            ["good", "good", "note", "note"],
        ),
        (
            {**NOTIFICATION, "x-hub-signature": "sha1=00"},
            "",
            ["good", "good", "good", "bad"],
        ),
        (NOTIFICATION, "secret", ["good", "good", "good", "bad"]),
        (
            {**NOTIFICATION, "x-hub-signature": "md5=00"},
            "secret",
            ["good", "good", "good", "bad"],
        ),
        (
            {**NOTIFICATION, "x-hub-signature": "sha256=00"},
            "secret",
            ["good", "good", "good", "bad"],
        ),
        (
            {**NOTIFICATION, "x-hub-signature": sign("sha512", "secret", b"body")},
            "secret",
            ["good", "good", "good", "good"],
        ),
    ],
)
def test_a_notification_has_its_type_its_links_and_a_signature(
    headers: dict[str, str], secret: str, levels: list[str]
) -> None:
    found = review_notification(headers, b"body", secret=secret, topic=TOPIC)
    assert [str(each.level) for each in found] == levels


def test_a_signature_is_computed_before_the_reader() -> None:
    headers = {**NOTIFICATION, "x-hub-signature": "sha256=00"}
    text = words(review_notification(headers, b"body", secret="secret", topic=""))
    expected = sign("sha256", "secret", b"body")
    assert "HMAC-SHA256 of the 4 bytes of the body" in text
    assert f"with the 6 bytes of the secret is {expected}, not sha256=00" in text
    assert "secret " not in text.replace("the secret ", "")


def test_a_signature_in_capitals_is_the_same_one() -> None:
    given = sign("sha1", "secret", b"body").upper()
    check = check_signature(given, "secret", b"body")
    assert check is not None
    assert check.is_right


@pytest.mark.parametrize(
    ("status", "level"), [(204, "good"), (410, "note"), (302, "bad"), (500, "bad")]
)
def test_a_callback_takes_a_notification_with_2xx(status: int, level: str) -> None:
    assert told(review_acknowledgement(status)) == [(level, "7")]
