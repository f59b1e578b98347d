from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from protocols.websub.verification import CHALLENGE, is_confirmed, verification_url

TOPIC = "https://feeds.example/é?a=b&c=d"


def url_for(callback: str = "https://reader.example/", **more: object) -> str:
    return verification_url(
        callback=callback,
        mode="subscribe",
        topic=TOPIC,
        challenge="abc",
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("character", "+-./09=AZ_az")
def test_a_challenge_may_have_these_characters(character: str) -> None:
    assert CHALLENGE.fullmatch(character)


@pytest.mark.parametrize("character", ["~", "!", ":", "%", "<", " ", "é", "\n", ","])
def test_a_challenge_must_not_have_others(character: str) -> None:
    assert not CHALLENGE.fullmatch(character)


def test_the_question_has_what_was_asked() -> None:
    query = urlsplit(url_for(lease_seconds=300, verify_token="theirs")).query
    assert parse_qsl(query) == [
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.challenge", "abc"),
        ("hub.lease_seconds", "300"),
        ("hub.verify_token", "theirs"),
    ]


def test_what_was_not_asked_is_left_out() -> None:
    assert "lease" not in url_for()
    assert "token" not in url_for()


@pytest.mark.parametrize(
    ("callback", "beginning"),
    [
        ("https://r.example", "https://r.example?hub.mode="),
        ("https://r.example/cb", "https://r.example/cb?hub.mode="),
        ("https://r.example/cb?", "https://r.example/cb?hub.mode="),
        ("https://r.example/cb?a=%7E", "https://r.example/cb?a=%7E&hub.mode="),
        ("https://r.example/cb?a&", "https://r.example/cb?a&hub.mode="),
        (
            "https://r.example/?hub.challenge=imahacker",
            "https://r.example/?hub.challenge=imahacker&hub.mode=",
        ),
    ],
)
def test_the_callbacks_own_query_stays_as_it_is(callback: str, beginning: str) -> None:
    assert url_for(callback).startswith(beginning)


@pytest.mark.parametrize(
    ("status", "body", "is_yes"),
    [
        (200, b"abc", True),
        (204, b"abc", True),
        (299, b"abc", True),
        (300, b"abc", False),
        (302, b"abc", False),
        (404, b"abc", False),
        (500, b"abc", False),
        (199, b"abc", False),
        (200, b"", False),
        (200, b"abc\n", False),
        (200, b"ABC", False),
        (200, b'"abc"', False),
    ],
)
def test_only_the_exact_challenge_with_a_2xx_confirms(
    status: int, body: bytes, is_yes: bool
) -> None:
    assert is_confirmed(status, body, "abc") is is_yes


def test_a_callback_is_told_which_it_is_if_it_wants_to_know() -> None:
    query = urlsplit(url_for(tells_callback=True)).query

    assert dict(parse_qsl(query))["hub.callback"] == "https://reader.example/"
