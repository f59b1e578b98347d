"""The Robots Exclusion Protocol (RFC 9309): what a site asks of automatic clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote, unquote_to_bytes

MOST_BYTES = 500 * 1024
"""2.5: "The parsing limit MUST be at least 500 kibibytes"."""
MOST_RULES = 5_000
"""Each is matched against every URL that is requested."""
MOST_PARTS = 20_000
"""The parts between asterisks, of all rules together: each takes a search."""
LONGEST_RULE = 4_096
"""Characters. No requested URL is as long; a longer rule is ignored."""
_LINE = re.compile(r"\s*([A-Za-z-]+)\s*:\s*([^#]*)")
_ASTERISKS = re.compile(r"\*+")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_RESERVED = "/*$?&=:@!',;()~+"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule. 2.2.3: ``*`` stands for any characters, ``$`` at the end for the end."""

    parts: tuple[str, ...]  # between the asterisks
    is_whole: bool
    length: int
    allows: bool

    def matches(self, path: str) -> bool:
        """Whether the rule matches, in one pass: the leftmost occurrence of each part
        suffices.
        """
        first, *rest = self.parts
        if not path.startswith(first):
            return False
        at = len(first)
        last = rest.pop() if rest and self.is_whole else None
        for part in rest:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if last is not None:
            return path.endswith(last) and len(path) - len(last) >= at
        return not self.is_whole or at == len(path)


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules for one client; without any, everything is allowed."""

    rules: tuple[_Rule, ...] = ()

    def allows(self, path: str) -> bool:
        """Whether a path, with its query, may be requested.

        2.2.2: "The most specific match found MUST be used", by octets; "If an "allow"
        rule and a "disallow" rule are equivalent, then the "allow" rule SHOULD be
        used." And: "The /robots.txt URI is implicitly allowed."
        """
        if path == "/robots.txt":
            return True
        wanted = _normalized(path or "/")
        matching = [rule for rule in self.rules if rule.matches(wanted)]
        if not matching:
            return True
        return max(matching, key=lambda rule: (rule.length, rule.allows)).allows


def read_robots(body: bytes, product: str) -> Robots:
    """The rules of a robots.txt for a client's product token, such as Fanfare.

    Never fails: lines that cannot be understood are ignored (2.2), and so is everything
    beyond the limit. All groups of the token count, and those of ``*`` only if it has
    none.
    """
    text = body[:MOST_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    ours, everybodys = product.lower(), "*"
    rules: dict[str, list[tuple[str, bool]]] = {}
    named: set[str] = set()  # which of the two names the current group is for
    in_rules = False
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        field, value = match[1].lower(), match[2].strip()
        if field == "user-agent":
            named = (set() if in_rules else named) | (
                {_token(value)} & {ours, everybodys}
            )
            in_rules = False
            for name in named:
                rules.setdefault(name, [])
        elif field in ("allow", "disallow"):
            in_rules = True
            if value and len(value) <= LONGEST_RULE:
                for name in named:
                    rules[name].append((value, field == "allow"))
    return Robots(tuple(_rules(rules.get(ours, rules.get(everybodys, ())))))


def _token(value: str) -> str:
    """The product token. 2.2.1: it is case-insensitive, and a version is not part of
    it.
    """
    match = _TOKEN.match(value)
    return match[0].lower() if match else value


def _rules(written: Iterable[tuple[str, bool]]) -> Iterator[_Rule]:
    """The first rules, as many as may be matched against every URL."""
    room = MOST_PARTS
    for path, allows in islice(written, MOST_RULES):
        rule = _rule(path, allows=allows)
        room -= len(rule.parts)
        if room < 0:
            return
        yield rule


def _rule(path: str, *, allows: bool) -> _Rule:
    wanted = _normalized(path)
    # Several asterisks mean the same as one.
    parts = tuple(_ASTERISKS.split(wanted.removesuffix("$")))
    return _Rule(parts, wanted.endswith("$"), len(wanted), allows)


def _normalized(path: str) -> str:
    """The form in which paths are compared.

    2.2.2: octets outside of ASCII, and reserved ones, are percent-encoded before
    comparing; others are not.
    """
    return quote(unquote_to_bytes(_keep_reserved(path)), safe=_RESERVED + "%")


def _keep_reserved(path: str) -> str:
    """Keep an encoded ``/`` or ``%``, which means something else than the plain
    sign.
    """
    return re.sub(
        "%(2F|25|2A|24|3F)", lambda match: f"%25{match[1].upper()}", path, flags=re.I
    )
