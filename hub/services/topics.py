"""A topic URL as people write it: checked, and parted from its credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from protocols.errors import InvalidValue
from protocols.feeds.resource import path_error
from protocols.selectors import (
    LONGEST,
    is_meant_as_path,
    may_take_forever,
    selector_of,
)
from protocols.websub.callbacks import read_web_url
from storage.records import Credentials

_WITH_CREDENTIALS = re.compile(r"(?P<scheme>[^/?#]*//)(?P<user>[^/?#]*)@(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class TopicAddress:
    url: str
    credentials: Credentials | None


def read_topic(field: str, value: str) -> TopicAddress:
    """Raises `InvalidValue` naming the field.

    ``user:password@`` becomes credentials: a URL is shown and logged, they are not.
    """
    url = value.strip()
    found = _WITH_CREDENTIALS.fullmatch(url)
    if found is None:
        return TopicAddress(read_web_url(url, field), None)
    username, _, password = found["user"].partition(":")
    return TopicAddress(
        read_web_url(found["scheme"] + found["rest"], field),
        Credentials(username=unquote(username), password=unquote(password)),
    )


def check_path(field: str, url: str) -> None:
    """Raises `InvalidValue` naming the field for a fragment that begins as a CSS path
    or a JSONPath does, and cannot be read: nothing would ever come of it."""
    selector = selector_of(url)
    if may_take_forever(selector):
        raise InvalidValue(field, "a JSONPath without (a+)+: quantifiers in others")
    if not selector and is_meant_as_path(url):
        expected = f"a CSS path or a JSONPath of at most {LONGEST} characters"
        raise InvalidValue(field, f"{expected} as its fragment", url)
    if reason := path_error(selector) if selector else "":
        expected = "a CSS path or a JSONPath (RFC 9535) as its fragment"
        raise InvalidValue(field, f"{expected} ({reason})", url)
