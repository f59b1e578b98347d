"""What a publisher sees of a request that it is asked about."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from hub.web.superfeedr.subscription_modes import shown_headers


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Cookie",
        "Private-Token",
        "X-Api-Key",
        "Api-Key",
        "X-Access-Token",
        "X-Vault-Token",
        "CF-Access-Client-Secret",
        "X-Forwarded-For",
        "Proxy-Authorization",
        "X-Session-Id",
    ],
)
def test_what_may_be_a_secret_or_tells_who_asks_is_not_shown(name: str) -> None:
    assert shown_headers(Headers({name: "planted"})) == ()


def test_what_says_something_of_the_request_is_shown_with_all_its_lines() -> None:
    lines = [(b"x-team", b"news"), (b"accept-language", b"de"), (b"x-team", b"sports")]
    assert shown_headers(Headers(raw=lines)) == (
        ("x-team", "news, sports"),
        ("accept-language", "de"),
    )
