"""A topic URL as people write it: checked, and parted from its credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

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
