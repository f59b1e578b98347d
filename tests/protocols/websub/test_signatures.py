from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import InvalidValue
from protocols.websub.signatures import ALGORITHMS, sign, sign_webhook, verify

BODY = b'{"items": []}\r\n\xff'
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


@given(st.sampled_from(ALGORITHMS), st.text(max_size=199), st.binary(max_size=200))
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
        sign("sha256", SECRET, BODY) + "0",
        sign("sha256", SECRET, BODY).replace("sha256", "sha1"),
        sign("sha256", SECRET, BODY + b" "),
        sign("sha256", SECRET + " ", BODY),
    ],
)
def test_any_other_signature_does_not_verify(signature: str) -> None:
    assert not verify(signature, SECRET, BODY)


def test_a_standard_webhooks_secret_is_decoded() -> None:
    key = bytes(range(24))
    secret = "whsec_" + base64.b64encode(key).decode()
    expected = hmac.new(key, b"e1-5-7.1700000000." + BODY, hashlib.sha256).digest()
    signature = sign_webhook(secret, "e1-5-7", 1_700_000_000, BODY)
    assert signature == "v1," + base64.b64encode(expected).decode()


@pytest.mark.parametrize("secret", ["plain", "whsec_not base64!", "whsec_\u00e4"])
def test_any_other_secret_is_its_utf8_bytes(secret: str) -> None:
    expected = hmac.new(secret.encode(), b"id.1." + BODY, hashlib.sha256).digest()
    signature = sign_webhook(secret, "id", 1, BODY)
    assert signature == "v1," + base64.b64encode(expected).decode()


def test_the_websub_key_is_never_decoded() -> None:
    secret = "whsec_" + base64.b64encode(b"key").decode()
    expected = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    assert sign("sha256", secret, BODY) == f"sha256={expected}"
