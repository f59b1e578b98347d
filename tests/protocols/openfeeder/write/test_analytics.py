from __future__ import annotations

import json

import pytest

from protocols.openfeeder.write.bot_requests import (
    BOTS,
    AnalyticsEvent,
    Endpoint,
    find_bot,
    ga4_body,
    ga4_query,
    umami_body,
)

EVENT = AnalyticsEvent(
    bot_name="GPTBot",
    bot_family="openai",
    endpoint=Endpoint.SEARCH,
    query="cheese",
    intent="answer",
    results=3,
    cached=True,
    response_ms=12,
)
FIELDS = {
    "bot_name": "GPTBot",
    "bot_family": "openai",
    "endpoint": "search",
    "query": "cheese",
    "intent": "answer",
    "results": 3,
    "cached": True,
    "response_ms": 12,
}


def test_an_event_has_all_eight_fields() -> None:
    assert EVENT.members == FIELDS


def test_umami_is_told_an_event_of_a_website() -> None:
    assert json.loads(umami_body(EVENT, "site-id", "hub.example")) == {
        "type": "event",
        "payload": {
            "website": "site-id",
            "hostname": "hub.example",
            "url": "/openfeeder",
            "name": "openfeeder_request",
            "data": FIELDS,
        },
    }


def test_ga4_is_told_an_event_of_a_client() -> None:
    assert json.loads(ga4_body(EVENT)) == {
        "client_id": "GPTBot",
        "events": [{"name": "openfeeder_request", "params": {**FIELDS, "cached": 1}}],
    }
    assert ga4_query("G-1", "a&b") == "measurement_id=G-1&api_secret=a%26b"


@pytest.mark.parametrize(
    ("agent", "name", "family"),
    [
        ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://o)", "GPTBot", "openai"),
        ("Mozilla/5.0 claudebot/1.0", "ClaudeBot", "anthropic"),
        ("PerplexityBot/1.0", "PerplexityBot", "perplexity"),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", "CCBot", "common-crawl"),
        ("meta-externalagent/1.1", "Meta-ExternalAgent", "meta"),
    ],
)
def test_bots_are_known_by_how_they_name_themselves(
    agent: str, name: str, family: str
) -> None:
    bot = find_bot(agent)
    assert bot is not None
    assert (bot.name, bot.family) == (name, family)


def test_nobody_else_is_a_bot_and_all_families_are_there() -> None:
    """12: the ten companies that it names."""
    assert find_bot("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0") is None
    assert find_bot("") is None
    assert {each.family for each in BOTS} == {
        *("openai", "anthropic", "google", "perplexity", "common-crawl", "cohere"),
        *("meta", "amazon", "you", "bytedance"),
    }
