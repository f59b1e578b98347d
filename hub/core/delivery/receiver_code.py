"""Code for developers of receivers to copy: a request as a shell command, byte for
byte, and code that checks whether a request comes from the hub.

The code checks the signature of Standard Webhooks, which every signed delivery has,
whatever its format. While a secret is being changed, either secret is accepted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from shlex import quote
from typing import Final

LONGEST_BODY: Final = 16 * 1024
"""The most bytes of a body that become part of the command."""
BODY_FILE: Final = "body.txt"
_OF_CURL: Final = frozenset({"host", "content-length", "transfer-encoding"})
"""Headers that curl sets by itself."""


def as_curl(method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    """The request as a command for curl. A body longer than `LONGEST_BODY` is read from
    a file that the command names."""
    given = [
        f"-H {quote(f'{name}: {value}')}"
        for name, value in headers.items()
        if name.lower() not in _OF_CURL
    ]
    before, data = _data(body)
    parts = [f"{before}curl -X {quote(method)} {quote(url)}", *given, data]
    return " \\\n  ".join(parts)


def _data(body: bytes) -> tuple[str, str]:
    """The shell text to put before the command, and curl's option for the body."""
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
    id = headers.get("webhook-id", "")
    at = headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    is_base64 = secret.startswith("whsec_")
    key = base64.b64decode(secret[6:]) if is_base64 else secret.encode()
    digest = hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")
    expected = b"v1," + base64.b64encode(digest)
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(each, expected) for each in given)
'''
_NODE: Final = """\
import { createHmac, timingSafeEqual } from "node:crypto";

// headers: by names in lower case; body: a Buffer of the bytes as they came
export function isGenuine(headers, body, secret) {
  const id = headers["webhook-id"], at = headers["webhook-timestamp"];
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= 300)) return false;
  const isBase64 = secret.startsWith("whsec_");
  const key = isBase64 ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);
  const hmac = createHmac("sha256", key).update(`${id}.${at}.`).update(body);
  const expected = Buffer.from("v1," + hmac.digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((each) => {
    const given = Buffer.from(each);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
"""
_GO: Final = """\
import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "fmt"
	"math"; "net/http"; "strconv"; "strings"; "time")

// body: the bytes as they came
func isGenuine(header http.Header, body []byte, secret string) bool {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-seconds)) > 300 {
		return false
	}
	key := []byte(secret)
	if strings.HasPrefix(secret, "whsec_") {
		if key, err = base64.StdEncoding.DecodeString(secret[6:]); err != nil {
			return false
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Fields(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}
"""
_PHP: Final = r"""<?php
// $header: a function from a name to a value; $body: the bytes as they came
function is_genuine(callable $header, string $body, string $secret): bool
{
    $id = $header('webhook-id');
    $at = $header('webhook-timestamp');
    if (!ctype_digit($at) || abs(time() - (int) $at) > 300) {
        return false;
    }
    $is_base64 = str_starts_with($secret, 'whsec_');
    $key = $is_base64 ? base64_decode(substr($secret, 6)) : $secret;
    $digest = hash_hmac('sha256', "$id.$at.$body", $key, true);
    $expected = 'v1,' . base64_encode($digest);
    foreach (explode(' ', $header('webhook-signature')) as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}
"""
_RUBY: Final = r"""require "openssl"

# headers: by names in lower case; body: the bytes as they came
def genuine?(headers, body, secret)
  id, at = headers["webhook-id"].to_s, headers["webhook-timestamp"].to_s
  return false unless at.match?(/\A\d+\z/) && (Time.now.to_i - at.to_i).abs <= 300

  key = secret.start_with?("whsec_") ? secret[6..].unpack1("m") : secret
  digest = OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{at}.".b + body.b)
  expected = "v1," + [digest].pack("m0")
  headers["webhook-signature"].to_s.split.any? do |given|
    given.bytesize == expected.bytesize &&
      OpenSSL.fixed_length_secure_compare(given, expected)
  end
end
"""
VERIFIERS: Final[Mapping[str, str]] = {
    "Python": _PYTHON,
    "Node": _NODE,
    "Go": _GO,
    "PHP": _PHP,
    "Ruby": _RUBY,
}
"""By language. The receivers in ``docs/receivers`` have the same functions."""
