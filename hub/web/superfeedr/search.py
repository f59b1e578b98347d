"""Which subscriptions are meant: ``search[feed.url]=…``, ``hub.callback[endpoint]…``.

The same keys in `list` and in `retrieve`. What XMPP's had finds nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from protocols.errors import InvalidValue
from protocols.superfeedr.parameters import Parameters
from storage.records import Bound, Comparison, Format, ListingSearch

KEYS = (
    "format",
    "feed.url",
    "feed.inurl",
    "feed.hostname",
    "feed.velocity",
    "feed.popularity",
    "feed.bozo",
    "feed.porn",
    "endpoint.url",
    "endpoint.inurl",
    "endpoint.hostname",
)
OF_XMPP = ("endpoint.jid", "endpoint.domain")

_BOUND = re.compile(r"\s*(>=|<=|>|<|=|)\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*")
_INSPECTED = re.compile(r'[{,]\s*:?"?([a-z_.]+)"?\s*(?:=>|:)\s*"([^"]*)"')


def search_of(given: Parameters, name: str) -> dict[str, str]:
    """The keys and values under a parameter, as they came. Raises `InvalidValue`.

    Ruby's clients send a hash as Ruby shows it, ``{"feed.url"=>"http://…"}``.
    """
    found = given.under(name)
    written = given.one(name)
    if written:
        pairs = _INSPECTED.findall(written)
        if not pairs:
            raise InvalidValue(name, f"{name}[KEY]=…, KEY one of {_KNOWN}", written)
        found |= dict(pairs)
    return found


def read_search(pairs: Mapping[str, str], name: str) -> ListingSearch | None:
    """None: nothing can be found. Raises `InvalidValue` naming ``name[key]``."""
    for key in pairs:
        if key not in KEYS + OF_XMPP:
            raise InvalidValue(f"{name}[{key[:40]}]", f"one of the keys {_KNOWN}")
    if any(key in pairs for key in OF_XMPP):
        return None
    return ListingSearch(
        format=_format(pairs.get("format", ""), name),
        topic=pairs.get("feed.url", "").strip(),
        topic_contains=pairs.get("feed.inurl", "").strip(),
        topic_host=pairs.get("feed.hostname", "").strip().lower(),
        callback=pairs.get("endpoint.url", "").strip(),
        callback_contains=pairs.get("endpoint.inurl", "").strip(),
        callback_host=pairs.get("endpoint.hostname", "").strip().lower(),
        velocity=_bound(pairs, name, "feed.velocity"),
        popularity=_bound(pairs, name, "feed.popularity"),
        bozo_rank=_bound(pairs, name, "feed.bozo"),
        porn_rank=_bound(pairs, name, "feed.porn"),
    )


def _format(value: str, name: str) -> Format | None:
    if not value:
        return None
    try:
        return Format(value.strip().lower())
    except ValueError:
        raise InvalidValue(f"{name}[format]", "json or atom", value) from None


def _bound(pairs: Mapping[str, str], name: str, key: str) -> Bound | None:
    if key not in pairs:
        return None
    found = _BOUND.fullmatch(pairs[key])
    if found is None:
        expected = "a number, or one after >, >=, < or <="
        raise InvalidValue(f"{name}[{key}]", expected, pairs[key])
    return Bound(Comparison(found[1] or "="), float(found[2]))


_KNOWN = ", ".join(KEYS)
