from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import InvalidValue
from protocols.websub.signatures import (
    ALGORITHMS,
    MOST_SIGNATURES,
    sign,
    sign_webhook,
    verify,
    verify_webhook,
)

BODY = b'{"items": []}\r\n\xff'
SECRETS = st.text(min_size=1, max_size=199)
SECRET = "geh\u00e4im"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_signature_is_the_hex_hmac_of_the_exact_bytes(algorithm: str) -> None:
    expected = hmac.new(SECRET.encode(), BODY, algorithm).hexdigest()
    assert sign(algorithm, SECRET, BODY) == f"{algorithm}={expected}"


def test_a_known_signature() -> None:
    # RFC 4231, test case 2
    body = b"what do ya want for nothing?"
    assert sign("sha256", "Jefe", body) == (
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


@pytest.mark.parametrize("algorithm", ["md5", "SHA256", "", "sha3_256"])
def test_an_algorithm_websub_does_not_have_is_refused(algorithm: str) -> None:
    with pytest.raises(InvalidValue, match="algorithm: expected one of sha1"):
        sign(algorithm, SECRET, BODY)


@given(st.sampled_from(ALGORITHMS), SECRETS, st.binary(max_size=200))
def test_what_was_signed_verifies(algorithm: str, secret: str, body: bytes) -> None:
    assert verify(sign(algorithm, secret, body), secret, body)


def test_hex_digits_may_be_of_either_case() -> None:
    assert verify(sign("sha1", SECRET, BODY).upper(), SECRET, BODY)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256",
        "sha256=",
        "=abc",
        "md5=9e107d9d372bb6826bd81d3542a419d6",
        "sha256=nonsense",
        "sha256=\u0660\u0661",
        sign("sha256", SECRET, BODY)[:-1],
        "sha256=\ud800",
        sign("sha256", SECRET, BODY)[:39],
        sign("sha256", SECRET, BODY).removeprefix("sha256="),
        sign("sha256", SECRET, BODY).replace("=", "=="),
        sign("sha256", SECRET, BODY) + " " + sign("sha256", SECRET, BODY),
        sign("sha256", SECRET, BODY).replace("sha256", "sha384"),
        sign("sha256", SECRET, BODY).replace("sha256", "none"),
        sign("sha256", SECRET, BODY[:-1]),
        sign("sha256", SECRET, b""),
        sign("sha256", "", BODY),
        "sha256=" + hashlib.sha256(SECRET.encode() + BODY).hexdigest(),
        sign("sha256", SECRET, BODY) + "0",
        sign("sha256", SECRET, BODY).replace("sha256", "sha1"),
        sign("sha256", SECRET, BODY + b" "),
        sign("sha256", SECRET + " ", BODY),
    ],
)
def test_any_other_signature_does_not_verify(signature: str) -> None:
    assert not verify(signature, SECRET, BODY)


def test_one_good_signature_of_several_is_enough() -> None:
    old, new = sign("sha1", SECRET, BODY), sign("sha256", SECRET, BODY)
    assert verify(f"sha1=0, {new}", SECRET, BODY)
    assert verify(f"{old}, {new}", SECRET, BODY)
    assert not verify(f"sha1=0, sha256=0, {new[:-1]}", SECRET, BODY)
    assert not verify(f"{'sha1=0,' * len(ALGORITHMS)}{new}", SECRET, BODY)


def test_a_standard_webhooks_secret_is_decoded() -> None:
    key = bytes(range(24))
    secret = "whsec_" + base64.b64encode(key).decode()
    expected = hmac.new(key, b"e1-5-7.1700000000." + BODY, hashlib.sha256).digest()
    signature = sign_webhook(secret, "e1-5-7", 1_700_000_000, BODY)
    assert signature == "v1," + base64.b64encode(expected).decode()


def test_nobody_signs_without_a_secret() -> None:
    for algorithm in ALGORITHMS:
        assert not verify(sign(algorithm, "", BODY), "", BODY)
    signed = sign_webhook("", "id", AT, BODY)
    assert not is_from("", signed)


AT = 1_700_000_000


def is_from(secret: str, signatures: str, **changed: object) -> bool:
    given = {"id": "id", "timestamp": str(AT), "body": BODY, "now": float(AT)}
    return verify_webhook(signatures, secret, **{**given, **changed})  # type: ignore[arg-type]


SIGNED = sign_webhook(SECRET, "id", AT, BODY)


@given(SECRETS, st.integers(0, 10**11 - 1), st.binary(max_size=200))
def test_what_was_signed_for_a_webhook_verifies(
    secret: str, at: int, body: bytes
) -> None:
    signed = sign_webhook(secret, "e-1-2", at, body)
    assert is_from(
        secret, signed, id="e-1-2", timestamp=str(at), body=body, now=at + 0.5
    )


def test_while_a_secret_is_changed_both_verify_and_no_third_does() -> None:
    both = (
        f"{sign_webhook('new', 'id', AT, BODY)} {sign_webhook('old', 'id', AT, BODY)}"
    )
    assert is_from("new", both)
    assert is_from("old", both)
    assert not is_from("older", both)
    assert not is_from("old", both.split(" ")[0])  # its time is over


@pytest.mark.parametrize("seconds", [-300, 0, 299.9, 300])
def test_clocks_may_differ_by_five_minutes(seconds: float) -> None:
    assert is_from(SECRET, SIGNED, now=AT + seconds)


@pytest.mark.parametrize("seconds", [-301, 301, 86_400, -1e12])
def test_what_was_recorded_cannot_be_played_back_later(seconds: float) -> None:
    assert not is_from(SECRET, SIGNED, now=AT + seconds)


@pytest.mark.parametrize(
    "changed",
    [
        {"body": BODY + b" "},
        {"body": BODY[:-1]},
        {"body": b""},
        {"id": "di"},
        {"id": ""},
        {"id": "ID"},
        {"timestamp": str(AT + 1)},
        {"timestamp": f"{AT} "},
        {"timestamp": f"+{AT}"},
        {"timestamp": f"{AT}.0"},
        {"timestamp": "1_700_000_000"},
        {"timestamp": "\u0661" * 10},
        {"timestamp": "9" * 400},
        {"timestamp": "-1"},
        {"timestamp": ""},
    ],
    ids=repr,
)
def test_what_was_changed_on_the_way_does_not_verify(
    changed: dict[str, object],
) -> None:
    assert not is_from(SECRET, SIGNED, **changed)


@pytest.mark.parametrize(
    "signatures",
    [
        "",
        "v1,",
        "v1",
        SIGNED[:-1],
        SIGNED[3:],
        SIGNED.lower(),
        SIGNED.replace("v1,", "v1a,"),
        SIGNED.replace("v1,", "v2,"),
        SIGNED.replace("v1,", "v1 ,"),
        SIGNED + ",",
        SIGNED * 2,
        sign_webhook("another", "id", AT, BODY),
        sign("sha256", SECRET, BODY),
        "v1," + base64.b64encode(hashlib.sha256(BODY).digest()).decode(),
        "v1,\xe4\ud800",
    ],
    ids=repr,
)
def test_any_other_signature_of_a_webhook_does_not_verify(signatures: str) -> None:
    assert not is_from(SECRET, signatures)


def test_no_part_of_a_body_passes_for_an_id_or_a_time() -> None:
    """``a.1700000000.1700000000.x`` was signed for the id ``a``."""
    inner = f"{AT}.x".encode()
    signed = sign_webhook(SECRET, "a", AT, inner)
    assert is_from(SECRET, signed, id="a", body=inner)
    assert not is_from(SECRET, signed, id=f"a.{AT}", body=b"x")


def test_of_a_flood_of_signatures_the_first_few_are_looked_at() -> None:
    wrong = "v1,eHg= "
    assert is_from(SECRET, wrong * (MOST_SIGNATURES - 1) + SIGNED)
    assert not is_from(SECRET, wrong * MOST_SIGNATURES + SIGNED)


def test_a_webhook_secret_without_bytes_is_no_key_that_all_know() -> None:
    for secret in ("whsec_", "whsec_===="):
        known = hmac.new(b"", b"id.1." + BODY, hashlib.sha256).digest()
        assert sign_webhook(secret, "id", 1, BODY) != (
            "v1," + base64.b64encode(known).decode()
        )


@pytest.mark.parametrize("secret", ["plain", "whsec_not base64!", "whsec_\u00e4"])
def test_any_other_secret_is_its_utf8_bytes(secret: str) -> None:
    expected = hmac.new(secret.encode(), b"id.1." + BODY, hashlib.sha256).digest()
    signature = sign_webhook(secret, "id", 1, BODY)
    assert signature == "v1," + base64.b64encode(expected).decode()


def test_the_websub_key_is_never_decoded() -> None:
    secret = "whsec_" + base64.b64encode(b"key").decode()
    expected = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    assert sign("sha256", secret, BODY) == f"sha256={expected}"
