from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from hub.http import Purpose
from hub.websub.callback_challenge import EXCERPT, MOST_READ, draw_challenge, excerpt_of
from protocols.websub.verification import CHALLENGE
from storage.records import Verification
from tests.support.fake_network import answered
from tests.support.open_hub import CHALLENGE as DRAWN
from tests.support.open_hub import OpenHubScene, a_subscription_request


async def pending(scene: OpenHubScene, **changes: object) -> Verification:
    await scene.request(a_subscription_request(**changes))
    (found,) = await scene.storage.verifications.due(
        scene.clock.now(), per_host=1, limit=1
    )
    return found


def test_challenges_are_of_the_allowed_characters_and_all_different() -> None:
    drawn = {draw_challenge() for _ in range(1_000)}
    assert len(drawn) == 1_000
    assert all(CHALLENGE.fullmatch(each) for each in drawn)


async def test_a_question_reads_little_and_follows_no_redirect(
    scene: OpenHubScene,
) -> None:
    scene.callbacks.answer_with(302)
    reply = await scene.questions.ask(await pending(scene))
    (request,) = scene.callbacks.requests
    assert (request.method, request.purpose) == ("GET", Purpose.CALLBACK)
    assert (request.cuts_body, request.cut) == (True, MOST_READ)
    assert urlsplit(request.url).hostname == "reader.example"
    assert "redirects are not followed" in reply.last.reason


@pytest.mark.parametrize(
    ("callback", "excerpt"),
    [("https://reader.example/", "a page"), ("https://reader.exempt/", "")],
)
async def test_what_an_exempt_host_answers_is_not_kept(
    scene: OpenHubScene, callback: str, excerpt: str
) -> None:
    scene.callbacks.answer_with(answered(body=b"a page"))
    reply = await scene.questions.ask(await pending(scene, callback=callback))
    assert (reply.last.excerpt, reply.last.status) == (excerpt, 200)


async def test_a_body_that_was_not_read_to_its_end_confirms_nothing(
    scene: OpenHubScene,
) -> None:
    cut = answered(body=DRAWN.encode(), complete=False)
    scene.callbacks.answer_with(cut)
    reply = await scene.questions.ask(await pending(scene))
    assert not reply.is_confirmed


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (b"", ""),
        (b" one\r\n two ", "one two"),
        (b"\xff\x00\x1b[31m", "\N{REPLACEMENT CHARACTER}[31m"),
        (b"x" * 1_000, "x" * EXCERPT),
    ],
)
def test_an_excerpt_is_short_text_on_one_line(body: bytes, excerpt: str) -> None:
    assert excerpt_of(body) == excerpt
