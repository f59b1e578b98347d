"""Challenges to callbacks, and denials.

No host is flooded with requests that a stranger caused: each host gets at most one a
second (denials included), no redirect is followed, and at most a kilobyte of an answer
is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Protocol

import msgspec

from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import Blocked, NetworkError
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.runtime.clock import Clock
from protocols.urls import host_name
from protocols.websub.verification import denial_url, is_confirmed, verification_url
from storage.records import Verification, VerificationMode, VerificationTry

LIMITS = ResponseLimits(seconds=20.0, idle_seconds=20.0)
MOST_READ = 1_024
"""Bytes of an answer that are read; a challenge is far shorter."""
EXCERPT = 200
"""Characters of an answer that are kept for the diagnostics."""


class ChallengeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a question. ``is_final``: asking again would change nothing."""

    is_confirmed: bool
    is_final: bool
    last: VerificationTry


class Question(Protocol):
    """The part of a verification that the callback is asked with."""

    @property
    def mode(self) -> VerificationMode: ...
    @property
    def topic(self) -> str: ...
    @property
    def callback(self) -> str: ...
    @property
    def lease_seconds(self) -> int: ...
    @property
    def verify_token(self) -> str: ...


def draw_challenge() -> str:
    """A random challenge, used once, of the characters that WebSub 5.3 allows."""
    return secrets.token_urlsafe(32)


class CallbackChallenges:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        user_agent: str,
        limiter: HostLimiter,
        challenge: Callable[[], str] = draw_challenge,
    ) -> None:
        self._network = network
        self._clock = clock
        self._user_agent = user_agent
        self._challenge = challenge
        self._limiter = limiter

    def is_paced(self, callback: str) -> bool:
        return not self._limiter.is_exempt(host_name(callback))

    def is_waiting(self, callback: str) -> bool:
        """Whether another question waits for the callback's host."""
        return self._limiter.is_waited_for(host_name(callback), RequestKind.QUESTION)

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> ChallengeReply:
        """Ask the callback. Any answer is final; silence is not."""
        challenge = self._challenge()
        is_new = verification.mode is VerificationMode.SUBSCRIBE
        url = verification_url(
            callback=verification.callback,
            mode=verification.mode,
            topic=verification.topic,
            challenge=challenge,
            lease_seconds=verification.lease_seconds if is_new else None,
            verify_token=verification.verify_token,
            tells_callback=tells_callback,
        )
        try:
            answer = await self._get(verification.callback, url)
        except NetworkError as error:
            last = VerificationTry(
                at=self._clock.now(), status=error.status, reason=error.reason
            )
            is_final = isinstance(error, Blocked)
            return ChallengeReply(is_confirmed=False, is_final=is_final, last=last)
        reason = _refusal(answer, challenge)
        last = VerificationTry(
            at=self._clock.now(),
            status=answer.status,
            excerpt=self._excerpt(verification.callback, answer),
            reason=reason,
        )
        return ChallengeReply(is_confirmed=not reason, is_final=True, last=last)

    async def deny(self, verification: Verification, reason: str) -> int:
        """Tell the callback that the hub refuses; returns the status, 0 without an
        answer."""
        url = denial_url(verification.callback, verification.topic, reason)
        try:
            return (await self._get(verification.callback, url)).status
        except NetworkError as error:
            return error.status

    def _excerpt(self, callback: str, answer: Answer) -> str:
        """The beginning of an answer, for the diagnostics; "" for an exempt host,
        because nobody is shown the contents of internal pages."""
        return excerpt_of(answer.body) if self.is_paced(callback) else ""

    async def _get(self, callback: str, url: str) -> Answer:
        await self._limiter.wait(host_name(callback), RequestKind.QUESTION)
        return await self._network.send(
            Request(
                method="GET",
                url=url,
                purpose=Purpose.CALLBACK,
                headers={"User-Agent": self._user_agent},
                limits=LIMITS,
                cuts_body=True,
                cut=MOST_READ,
            )
        )


def excerpt_of(body: bytes) -> str:
    """The beginning of an answer as text on one line."""
    text = " ".join(body.decode(errors="replace").split())
    return "".join(each for each in text if each.isprintable())[:EXCERPT]


def _refusal(answer: Answer, challenge: str) -> str:
    """Why an answer does not confirm the request; "" if it does."""
    if answer.complete and is_confirmed(answer.status, answer.body, challenge):
        return ""
    if 200 <= answer.status < 300:
        return "the body of the answer is not the challenge"
    if 300 <= answer.status < 400:
        return f"answered {answer.status}; redirects are not followed"
    return f"answered {answer.status}"
