"""What developers of receivers copy: a request as a command of the shell, byte for
byte, and code that tells whether a request is the hub's.

The code checks the signature of Standard Webhooks, which every signed delivery has,
whatever its format; while a secret is being changed, by either secret.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from shlex import quote
from typing import Final

LONGEST_BODY: Final = 16 * 1024
"""Bytes of a body that become part of the command."""
BODY_FILE: Final = "body.txt"
_OF_CURL: Final = frozenset({"host", "content-length", "transfer-encoding"})
"""Headers that it sets by itself."""


def as_curl(method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    """The request as a command for curl. Of a body longer than `LONGEST_BODY` it names
    only a file that has it."""
    given = [
        f"-H {quote(f'{name}: {value}')}"
        for name, value in headers.items()
        if name.lower() not in _OF_CURL
    ]
    before, data = _data(body)
    parts = [f"{before}curl -X {quote(method)} {quote(url)}", *given, data]
    return " \\\n  ".join(parts)


def _data(body: bytes) -> tuple[str, str]:
    """What goes before the command, and its option."""
    if len(body) > LONGEST_BODY:
        return "", f"--data-binary @{BODY_FILE}"
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return "", f"--data-raw {quote(text)}"
    packed = b64encode(body).decode()
    return f"printf %s {packed} | base64 -d | ", "--data-binary @-"


_PYTHON: Final = '''\
import base64, hmac, time

def is_genuine(headers, body: bytes, secret: str) -> bool:
    """headers: by names in lower case; body: the bytes as they came."""
    id, at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(at)) > 300:
        return False
    is_base64 = secret.startswith("whsec_")
    key = base64.b64decode(secret[6:]) if is_base64 else secret.encode()
    digest = hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")
    expected = "v1," + base64.b64encode(digest).decode()
    given = headers["webhook-signature"].split()
    return any(hmac.compare_digest(each, expected) for each in given)
'''
_NODE: Final = """\
import { createHmac, timingSafeEqual } from "node:crypto";

// headers: by names in lower case; body: a Buffer of the bytes as they came
export function isGenuine(headers, body, secret) {
  const id = headers["webhook-id"], at = headers["webhook-timestamp"];
  if (Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const isBase64 = secret.startsWith("whsec_");
  const key = isBase64 ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);
  const hmac = createHmac("sha256", key).update(`${id}.${at}.`).update(body);
  const expected = Buffer.from("v1," + hmac.digest("base64"));
  return headers["webhook-signature"].split(" ").some((each) => {
    const given = Buffer.from(each);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
"""
VERIFIERS: Final[Mapping[str, str]] = {"Python": _PYTHON, "Node": _NODE}
"""By language."""
