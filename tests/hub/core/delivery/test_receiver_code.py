"""Requests as commands of the shell, and code that checks them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from hub.core.delivery.receiver_code import BODY_FILE, LONGEST_BODY, VERIFIERS, as_curl
from protocols.websub.signatures import sign_webhook

URL = "https://you.example/it's?a=b&c=$(x)"
RECEIVERS = Path(__file__).parents[4] / "docs" / "receivers"
BODY = b'{"it\'s": "@`x` \\\\ $HOME"}\n'


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (BODY, ["--data-raw", BODY.decode()]),
        (b"", ["--data-raw", ""]),
        (b"a" * (LONGEST_BODY + 1), ["--data-binary", f"@{BODY_FILE}"]),
    ],
    ids=["text", "nothing", "too long"],
)
def test_a_shell_passes_on_every_byte(body: bytes, data: list[str]) -> None:
    headers = {"Host": "you.example", "X-It's": "$(x)", "Content-Length": "1"}
    words = shlex.split(as_curl("POST", URL, headers, body).replace("\\\n", ""))
    assert words == ["curl", "-X", "POST", URL, "-H", "X-It's: $(x)", *data]


@pytest.mark.parametrize("body", [b"\xff\xfe\n", b"a\0b"])
def test_a_body_that_is_no_text_goes_through_base64(body: bytes) -> None:
    command = as_curl("POST", "https://you.example/", {}, body)
    before, _, curl = command.partition("curl ")
    assert curl.endswith("--data-binary @-")
    made = subprocess.run(
        ["sh", "-c", before.removesuffix("| ")], capture_output=True, check=True
    )
    assert made.stdout == body


@pytest.mark.parametrize("secret", ["geheim", "whsec_Z2VoZWlt"])
def test_the_code_for_receivers_takes_what_the_hub_signs_and_nothing_else(
    secret: str,
) -> None:
    code: dict[str, object] = {}
    exec(VERIFIERS["Python"], code)  # noqa: S102 - it is ours
    is_genuine = code["is_genuine"]
    assert callable(is_genuine)
    now = int(time.time())
    former = sign_webhook("another", "id-1", now, BODY)
    headers = {
        "webhook-id": "id-1",
        "webhook-timestamp": str(now),
        "webhook-signature": f"{former} {sign_webhook(secret, 'id-1', now, BODY)}",
    }
    assert is_genuine(headers, BODY, secret)
    assert not is_genuine(headers, BODY + b" ", secret)
    assert not is_genuine(headers, BODY, "wrong")
    assert not is_genuine({**headers, "webhook-timestamp": "1"}, BODY, secret)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_so_does_that_for_node() -> None:
    now = int(time.time())
    signature = sign_webhook("geheim", "id-1", now, b"body")
    check = f"""
const headers = {{"webhook-id": "id-1", "webhook-timestamp": "{now}",
  "webhook-signature": "v1,x {signature}"}};
const found = ["body", "other"].map(
  (each) => isGenuine(headers, Buffer.from(each), "geheim"));
console.log(found.join());
"""
    made = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=VERIFIERS["Node"] + check,
        capture_output=True,
        check=True,
        text=True,
    )
    assert made.stdout.strip() == "true,false"


@pytest.mark.parametrize(
    ("language", "program", "beginning"),
    [
        ("Python", "starlette_receiver.py", "def is_genuine"),
        ("Node", "node_receiver.mjs", "// headers:"),
        ("Go", "go_receiver.go", "// body:"),
        ("PHP", "php_receiver.php", "// $header:"),
        ("Ruby", "ruby_receiver.rb", "# headers:"),
    ],
)
def test_the_receivers_of_the_docs_have_the_code_of_the_pages(
    language: str, program: str, beginning: str
) -> None:
    _, found, rest = VERIFIERS[language].partition(beginning)
    assert found
    assert found + rest in (RECEIVERS / program).read_text()


def test_those_in_python_are_the_same_but_for_the_framework() -> None:
    begins, ends = "SECRET = ", "return json.load(answer)\n"
    texts = [each.read_text() for each in RECEIVERS.glob("*_receiver.py")]
    assert len(texts) == 3
    assert len({each[each.index(begins) : each.index(ends)] for each in texts}) == 1
