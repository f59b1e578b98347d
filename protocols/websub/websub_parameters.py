"""Requests to the hub: subscribe, unsubscribe, and publish (WebSub 5.1).

"Hubs MUST ignore additional request parameters they do not understand". Only the
presence of ``hub.verify`` (PubSubHubbub 0.3) matters. Errors name the parameter at
fault. Leases are in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from protocols.protocol_errors import InvalidValue
from protocols.websub.callbacks import read_callback, read_web_url
from protocols.websub.signatures import ALGORITHMS, OF_OLD


def only_value(name: str, values: Set[str], default: str = "") -> str:
    """The only value. Raises `InvalidValue` if there are different ones."""
    if len(values) > 1:
        raise InvalidValue(name, "one value, not several")
    return next(iter(values), default)


def required_value(name: str, value: str, expected: str) -> str:
    """Raises `InvalidValue` if it is missing."""
    if not value:
        raise InvalidValue(name, f"{expected}; it is missing")
    return value


DEFAULT_LEASE: Final = 864_000
"""WebSub 5.1: "10 days is a good default"."""
SHORTEST_LEASE: Final = 300
LONGEST_LEASE: Final = 2_592_000
ENDLESS_LEASE: Final = 315_359_999
"""The lease reported for a subscription without an end: ten years, as in Superfeedr."""

SECRET_OVERLAP: Final = 86_400
"""Seconds for which a replaced secret still signs as well."""


def granted_lease(requested: int | None, shortest: int = SHORTEST_LEASE) -> int:
    """The lease that the hub grants; it "MAY choose to respect this value or not".

    A request beyond the limits is cut to them, never refused: subscribers that ask for
    a year cannot handle a 400.
    """
    if requested is None:
        requested = DEFAULT_LEASE
    return min(max(requested, shortest), LONGEST_LEASE)


MOST_PARAMETERS = 5_000


@dataclass(frozen=True, slots=True)
class Form:
    """Names and values in the order they came; without empty values.

    An empty parameter is an absent one: clients send ``hub.secret=`` and mean none.
    """

    parameters: tuple[tuple[str, str], ...]

    def all(self, name: re.Pattern[str]) -> list[str]:
        """Values of all parameters whose whole name matches."""
        return [value for each, value in self.parameters if name.fullmatch(each)]

    def one(self, name: str, default: str = "") -> str:
        """The only value. Raises `InvalidValue` if there are different ones."""
        values = [value for each, value in self.parameters if each == name]
        if len(values) < 2:
            return values[0] if values else default
        return only_value(name, {*values}, default)

    def required(self, name: str, expected: str) -> str:
        """Raises `InvalidValue` if it is missing."""
        return required_value(name, self.one(name), expected)


def read_form(body: bytes, query: str = "") -> Form:
    """``application/x-www-form-urlencoded`` in UTF-8; parameters of the query follow.

    Raises `InvalidValue` naming ``body`` or ``query``.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidValue("body", "a form in UTF-8") from None
    return Form((*_pairs(text, "body"), *_pairs(query, "query")))


def _pairs(text: str, field: str) -> list[tuple[str, str]]:
    """Like `urllib.parse.parse_qsl`, in a third of its time."""
    if not text:
        return []
    if text.count("&") >= MOST_PARAMETERS:
        raise InvalidValue(field, f"at most {MOST_PARAMETERS} parameters")
    written = (each.partition("=") for each in text.replace("+", " ").split("&"))
    try:
        pairs = [
            (_unquoted(name), _unquoted(value)) for name, _, value in written if value
        ]
    except UnicodeDecodeError:
        raise InvalidValue(field, "percent-encoded UTF-8") from None
    return [(name, value) for name, value in pairs if value.strip()]


@lru_cache(1024)
def _unquoted(text: str) -> str:
    """Decode a text. Cached, since thousands subscribe to one topic."""
    return unquote_to_bytes(text).decode() if "%" in text else text


LONGEST_SECRET = 199
"""Bytes. WebSub 5.1: "This parameter MUST be less than 200 bytes in length"."""
LONGEST_VERIFY_TOKEN = 1_024
"""Characters. The token is sent back in a URL."""
MOST_PUBLISHED = 1_000
"""URLs of one publish request."""
FORMATS = ("json", "atom")
"""The formats of normalized notifications; without one the topic itself is sent."""

_URL_NAMES = re.compile(r"hub\.(?:url|topic)(?:\[\d{0,4}\])?")
_VERIFY = re.compile(r"hub\.verify")
_BETWEEN_URLS = re.compile(r",(?=\s*https?://)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeRequest:
    """``lease_seconds`` is what the hub grants. ``format`` "": the topic as it is."""

    topic: str
    callback: str
    lease_seconds: int
    secret: str = ""
    algorithm: str = "sha256"
    format: str = ""
    verify_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsubscribeRequest:
    topic: str
    callback: str
    verify_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedUrl:
    """An invalid URL of a publish request, and why it is invalid."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """Topics that have news, each once. A bad URL does not affect the good ones."""

    topics: tuple[str, ...]
    refused: tuple[RefusedUrl, ...] = ()


HubRequest = SubscribeRequest | UnsubscribeRequest | PublishRequest


def read_request(form: Form, shortest_lease: int = SHORTEST_LEASE) -> HubRequest:
    """Read a request. ``shortest_lease`` is in seconds. Raises `InvalidValue`."""
    mode = form.required("hub.mode", "subscribe, unsubscribe or publish")
    match mode:
        case "subscribe":
            return _read_subscribe(form, shortest_lease)
        case "unsubscribe":
            return UnsubscribeRequest(
                topic=_read_topic(form),
                callback=_read_callback(form),
                verify_token=_read_verify_token(form),
            )
        case "publish":
            return _read_publish(form)
    raise InvalidValue("hub.mode", "subscribe, unsubscribe or publish", mode)


def _read_subscribe(form: Form, shortest_lease: int) -> SubscribeRequest:
    return SubscribeRequest(
        topic=_read_topic(form),
        callback=_read_callback(form),
        lease_seconds=granted_lease(_read_lease(form), shortest_lease),
        secret=_read_secret(form),
        algorithm=_read_algorithm(form),
        format=_read_choice(form, "format", FORMATS),
        verify_token=_read_verify_token(form),
    )


def _read_topic(form: Form) -> str:
    value = form.required("hub.topic", "the URL of the topic")
    return read_web_url(value, "hub.topic", allows_fragment=False)


def _read_callback(form: Form) -> str:
    value = form.required("hub.callback", "the URL of the subscriber's callback")
    return read_callback(value, "hub.callback")


def _read_lease(form: Form) -> int | None:
    value = form.one("hub.lease_seconds").strip()
    if not value:
        return None
    if not value.isascii() or not value.isdigit():
        raise InvalidValue("hub.lease_seconds", "a whole number of seconds", value)
    return int(value[:20])


def _read_secret(form: Form) -> str:
    """Read the secret. Its length is counted in bytes of UTF-8, which sign."""
    secret = form.one("hub.secret")
    if len(secret.encode()) > LONGEST_SECRET:
        raise InvalidValue("hub.secret", f"at most {LONGEST_SECRET} bytes")
    return secret


def _read_choice(form: Form, name: str, choices: tuple[str, ...]) -> str:
    value = form.one(name)
    if value and value not in choices:
        raise InvalidValue(name, f"one of {', '.join(choices)}", value)
    return value


def _read_algorithm(form: Form) -> str:
    """Read the algorithm. The default depends on the client's age: ``hub.verify`` is of
    PubSubHubbub 0.3, which knows only SHA-1.
    """
    chosen = _read_choice(form, "hub.signature_algorithm", ALGORITHMS)
    return chosen or (OF_OLD if form.all(_VERIFY) else "sha256")


def _read_verify_token(form: Form) -> str:
    token = form.one("hub.verify_token")
    if len(token) > LONGEST_VERIFY_TOKEN:
        expected = f"at most {LONGEST_VERIFY_TOKEN} characters"
        raise InvalidValue("hub.verify_token", expected)
    return token


def _read_publish(form: Form) -> PublishRequest:
    """Read ``hub.url`` or ``hub.topic``, repeated, with ``[]``, or separated by
    commas.
    """
    given = [
        url.strip()
        for value in form.all(_URL_NAMES)
        for url in _BETWEEN_URLS.split(value)
    ]
    if not given:
        raise InvalidValue("hub.url", "the URL of a topic with news; it is missing")
    if len(given) > MOST_PUBLISHED:
        raise InvalidValue("hub.url", f"at most {MOST_PUBLISHED} URLs")
    topics: dict[str, None] = {}
    refused: dict[str, RefusedUrl] = {}
    for url in given:
        try:
            topics.setdefault(read_web_url(url, "hub.url"))
        except InvalidValue as error:
            refused[url] = RefusedUrl(url=url, reason=str(error))
    if not topics:
        raise InvalidValue("hub.url", "an absolute http or https URL", given[0])
    return PublishRequest(topics=tuple(topics), refused=tuple(refused.values()))
