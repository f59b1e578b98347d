"""What the hub signs is what receivers verify that know nothing but the specification.

In Python, and in those of four other languages that are installed here.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from protocols.websub.delivery import WebhookDelivery, delivery_headers
from protocols.websub.signatures import sign_webhook, verify_webhook
from tests.support.standard_webhooks import Received
from tests.support.standard_webhooks import verifies as verifies_by_hand

PROGRAMS = Path(__file__).parents[1] / "data" / "webhooks"
LANGUAGES = {"node": "js", "ruby": "rb", "php": "php", "perl": "pl"}
AT = 1_614_265_330
PUBLISHED = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    b'{"test": 2432232314}',
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
)
"""Secret, id, body and signature, at that time: the example that the specification's
reference libraries are tested with."""


def secret_of(length: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(length))).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request as a receiver with that secret sees it."""

    secret: str
    id: str
    timestamp: str
    signatures: str
    body: bytes
    now: int = AT


def sent(
    body: bytes = b"{}", secret: str = secret_of(32), former_secret: str = ""
) -> Case:
    """What the hub sends."""
    delivery = WebhookDelivery(
        topic="https://site.example/feed",
        callback="https://reader.example/",
        hub="https://hub.example/hub",
        content_type="application/json",
        body=body,
        id="4f2a-15-7",
        timestamp=AT,
        secret=secret,
        former_secret=former_secret,
    )
    headers = delivery_headers(delivery)
    return Case(
        secret=secret,
        id=headers["webhook-id"],
        timestamp=headers["webhook-timestamp"],
        signatures=headers["webhook-signature"],
        body=body,
    )


SENT = sent()
CHANGED = sent(secret=secret_of(24), former_secret=secret_of(48))
_SIGNATURE = SENT.signatures.removeprefix("v1,")

GOOD = {
    "the published example": Case(
        secret=PUBLISHED[0],
        id=PUBLISHED[1],
        timestamp=str(AT),
        signatures=PUBLISHED[3],
        body=PUBLISHED[2],
    ),
    "a notification": SENT,
    "no body": sent(b""),
    "any bytes": sent(bytes(range(256)) * 300),
    "24 bytes of secret": sent(secret=secret_of(24)),
    "64 bytes of secret": sent(secret=secret_of(64)),
    "more than a block of secret": sent(secret=secret_of(100)),
    "the new secret": CHANGED,
    "the former secret": replace(CHANGED, secret=secret_of(48)),
    "five minutes late": replace(SENT, now=AT + 300),
}
FORGED = {
    "another secret": replace(SENT, secret=secret_of(31)),
    "another secret than either": replace(CHANGED, secret=secret_of(47)),
    "another id": replace(SENT, id="4f2a-15-8"),
    "another time": replace(SENT, timestamp=str(AT + 1)),
    "another body": replace(SENT, body=b"{} "),
    "a longer id": replace(SENT, id=f"{SENT.id}.{AT}", body=b""),
    "too late": replace(SENT, now=AT + 301),
    "too early": replace(SENT, now=AT - 301),
    "another version": replace(SENT, signatures=f"v1a,{_SIGNATURE}"),
    "no version": replace(SENT, signatures=_SIGNATURE),
    "a short signature": replace(
        SENT,
        signatures="v1," + base64.b64encode(base64.b64decode(_SIGNATURE)[:31]).decode(),
    ),
    "no signature": replace(SENT, signatures=""),
}
ALL = [*GOOD.values(), *FORGED.values()]
EXPECTED = [True] * len(GOOD) + [False] * len(FORGED)


def by_the_hub(case: Case) -> bool:
    """As `fanfare listen` does."""
    return verify_webhook(
        case.signatures,
        case.secret,
        id=case.id,
        timestamp=case.timestamp,
        body=case.body,
        now=case.now,
    )


def by_hand(case: Case) -> bool:
    headers = {
        "webhook-id": case.id,
        "webhook-timestamp": case.timestamp,
        "webhook-signature": case.signatures,
    }
    request = Received(headers=headers, body=case.body, now=case.now)
    return verifies_by_hand(request, case.secret)


def by_program(language: str, cases: Sequence[Case]) -> list[bool]:
    lines = [
        "\t".join(
            (
                str(each.now),
                each.secret,
                each.id,
                each.timestamp,
                each.signatures,
                base64.b64encode(each.body).decode(),
            )
        )
        for each in cases
    ]
    done = subprocess.run(
        [language, str(PROGRAMS / f"verify.{LANGUAGES[language]}")],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [said == "yes" for said in done.stdout.split()]


def test_the_published_example_is_what_the_hub_signs() -> None:
    secret, id, body, signature = PUBLISHED
    assert sign_webhook(secret, id, AT, body) == signature


@pytest.mark.parametrize("verifies", [by_the_hub, by_hand])
@pytest.mark.parametrize("name", [*GOOD, *FORGED])
def test_a_receiver_knows_what_is_the_hub_s(
    name: str, verifies: Callable[[Case], bool]
) -> None:
    assert verifies({**GOOD, **FORGED}[name]) is (name in GOOD)


@pytest.mark.parametrize("language", [*filter(shutil.which, LANGUAGES)])
def test_so_does_one_in_another_language(language: str) -> None:
    told = dict(zip([*GOOD, *FORGED], by_program(language, ALL), strict=True))
    assert told == dict(zip([*GOOD, *FORGED], EXPECTED, strict=True))
