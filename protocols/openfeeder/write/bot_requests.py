"""Report requests of bots (OpenFeeder 12) to Umami and GA4.

Only programs that read for language models and search are counted, by their User-Agent
("Privacy": "Analytics track bot requests only. No human user data is collected").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

import orjson


@dataclass(frozen=True, slots=True)
class Bot:
    """``family`` is the company, by the name that OpenFeeder uses."""

    name: str
    family: str


BOTS: Final = tuple(
    Bot(name, family)
    for family, names in {
        "openai": ("GPTBot", "ChatGPT-User", "OAI-SearchBot"),
        "anthropic": ("ClaudeBot", "Claude-User", "Claude-SearchBot", "anthropic-ai"),
        "google": ("Google-Extended", "GoogleOther", "Googlebot"),
        "perplexity": ("PerplexityBot", "Perplexity-User"),
        "common-crawl": ("CCBot",),
        "cohere": ("cohere-ai", "cohere-training-data-crawler"),
        "meta": ("Meta-ExternalAgent", "Meta-ExternalFetcher", "FacebookBot"),
        "amazon": ("Amazonbot",),
        "you": ("YouBot",),
        "bytedance": ("Bytespider",),
    }.items()
    for name in names
)


def find_bot(user_agent: str) -> Bot | None:
    """The bot that made a request; None for people, and for unknown programs."""
    written = user_agent.lower()
    return next((bot for bot in BOTS if bot.name.lower() in written), None)


EVENT = "openfeeder_request"
_LONGEST = 200
"""Characters of a client's text that are reported."""


class Endpoint(StrEnum):
    SEARCH = "search"
    FETCH = "fetch"
    INDEX = "index"
    DISCOVERY = "discovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsEvent:
    """All eight fields of section 12."""

    bot_name: str
    bot_family: str
    endpoint: Endpoint
    query: str = ""
    intent: str = ""
    results: int = 0
    cached: bool = False
    response_ms: int = 0

    @property
    def members(self) -> dict[str, object]:
        return {
            "bot_name": self.bot_name,
            "bot_family": self.bot_family,
            "endpoint": str(self.endpoint),
            "query": self.query[:_LONGEST],
            "intent": self.intent[:_LONGEST],
            "results": self.results,
            "cached": self.cached,
            "response_ms": self.response_ms,
        }


def umami_body(event: AnalyticsEvent, website: str, hostname: str) -> bytes:
    """The body for Umami's ``POST /api/send``."""
    payload = {
        "website": website,
        "hostname": hostname,
        "url": "/openfeeder",
        "name": EVENT,
        "data": event.members,
    }
    return orjson.dumps({"type": "event", "payload": payload})


def ga4_body(event: AnalyticsEvent) -> bytes:
    """The body for GA4's Measurement Protocol. Each bot counts as one client."""
    # Parameters may only be texts and numbers.
    params = {**event.members, "cached": int(event.cached)}
    events = [{"name": EVENT, "params": params}]
    return orjson.dumps({"client_id": event.bot_name, "events": events})


def ga4_query(measurement_id: str, secret: str) -> str:
    return urlencode({"measurement_id": measurement_id, "api_secret": secret})
