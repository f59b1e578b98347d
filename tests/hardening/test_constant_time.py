"""What a secret decides is compared by a function whose time tells nothing.

Not measured, for a machine's noise hides what the network's would not: each comparison
is seen to be made by it, whether all, the first half or nothing of the value is right.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from starlette.datastructures import Headers

from hub.publishing.openfeeder_gatekeeper import Gatekeeper
from hub.web.authentication import Authenticator
from hub.web.problems import Problem
from protocols.websub.signatures import sign, sign_webhook, verify, verify_webhook
from protocols.websub.verification import is_confirmed
from tests.support.services import open_hub

SECRET, AT, BODY = "a secret of some length", 1_700_000_000, b"{}"


@contextmanager
def comparisons() -> Iterator[list[str]]:
    """One for each call of `hmac.compare_digest` meanwhile."""
    made: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        name = getattr(called, "__name__", "")
        if event == "c_call" and "compare_digest" in name:
            made.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield made
    finally:
        sys.setprofile(before)


def spoiled(value: str) -> list[str]:
    """The value, one that begins like it, and one that does not."""
    half = len(value) // 2
    return [value, value[:half] + "A" * (len(value) - half), "A" * len(value)]


def of_websub(given: str) -> bool:
    return verify(f"sha256={given}", SECRET, BODY)


def of_a_webhook(given: str) -> bool:
    time = {"timestamp": str(AT), "now": float(AT)}
    return verify_webhook(f"v1,{given}", SECRET, id="1", body=BODY, **time)  # type: ignore[arg-type]


def of_a_challenge(given: str) -> bool:
    return is_confirmed(200, given.encode(), SECRET)


def of_a_reader_s_key(given: str) -> bool:
    return Gatekeeper(key=SECRET).admits(f"Bearer {given}")


COMPARED: dict[Callable[[str], bool], str] = {
    of_websub: sign("sha256", SECRET, BODY).partition("=")[2],
    of_a_webhook: sign_webhook(SECRET, "1", AT, BODY).partition(",")[2],
    of_a_challenge: SECRET,
    of_a_reader_s_key: SECRET,
}


@pytest.mark.parametrize("is_right", COMPARED)
def test_what_a_secret_decides_is_compared_in_constant_time(
    is_right: Callable[[str], bool],
) -> None:
    for number, given in enumerate(spoiled(COMPARED[is_right])):
        with comparisons() as made:
            told = is_right(given)
        assert told is (number == 0)
        assert len(made) == 1


async def test_so_is_the_administrator_s_token(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        authenticator = Authenticator(hub.services.tokens, SECRET)
        for number, given in enumerate(spoiled(SECRET)):
            header = Headers({"Authorization": f"Bearer {given}"})
            with comparisons() as made:
                told = await _is_let_in(authenticator.identify(header))
            assert told is (number == 0)
            assert len(made) == 1


async def _is_let_in(asking: Coroutine[Any, Any, Any]) -> bool:
    try:
        return await asking is not None
    except Problem:
        return False
