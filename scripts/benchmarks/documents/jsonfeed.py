"""JSON Feed 1.1."""

from __future__ import annotations

import json
from random import Random

from scripts.benchmarks.documents import prose
from scripts.benchmarks.documents.facts import Habits, Item
from scripts.benchmarks.documents.markup import iso_date


def begin(random: Random, habits: Habits, kind: str) -> str:
    head = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": prose.title(random),
        "home_page_url": f"{habits.site}/",
        "feed_url": f"{habits.site}/feed.json",
        "language": "en",
    }
    return json.dumps(head, ensure_ascii=False)[:-1] + ', "items": [\n'


def end() -> str:
    return "]}\n"


def item(random: Random, habits: Habits, kind: str, entry: Item) -> str:
    size = random.randint(500, 6_000)
    facts = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "content_html": prose.html(random, size, root=habits.root),
        "date_published": iso_date(entry.at, habits),
        "authors": [{"name": entry.author, "url": f"{habits.site}/about/"}],
        "tags": entry.terms,
        "attachments": [
            {"url": f"{habits.site}/{entry.number}.mp3", "mime_type": "audio/mpeg"}
        ]
        * (entry.number % 5 == 0),
    }
    known = {key: value for key, value in facts.items() if value}
    return json.dumps(known, ensure_ascii=False)
