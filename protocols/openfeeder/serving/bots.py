"""Which programs read for language models and search, by how they name themselves.

Only these are counted (OpenFeeder 12, "Privacy": "Analytics track bot requests only.
No human user data is collected").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bot:
    """``family`` is the company, as OpenFeeder names them."""

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
    """None for people, and for programs nobody knows."""
    written = user_agent.lower()
    return next((bot for bot in BOTS if bot.name.lower() in written), None)
