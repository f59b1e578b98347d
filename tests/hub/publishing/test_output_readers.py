"""Who reads what is published, counted for a day."""

from __future__ import annotations

import pytest

from hub.publishing.output_readers import Output, OutputReaders, output_of
from tests.support.clock import ManualClock

GPT = "Mozilla/5.0 AppleWebKit/537.36; compatible; GPTBot/1.2"


def told(readers: OutputReaders) -> list[tuple[str, str, int, int]]:
    return [(it.output, it.reader, it.hour, it.day) for it in readers.counts()]


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("/myPublicFeeds.opml", Output.OPML),
        ("/sitemap.xml", Output.SITEMAP),
        ("/scp/all-snapshot.jsonl", Output.COLLECTIONS),
        ("/topics/7.atom", Output.TOPICS),
        ("/topics/7.normalized.json", Output.TOPICS),
        ("/openfeeder", Output.OPENFEEDER),
        ("/.well-known/openfeeder.json", Output.OPENFEEDER),
        ("/topics", None),
        ("/topics/7", None),
        ("/openfeeder/update", None),
        ("/", None),
    ],
)
def test_an_output_is_known_by_its_path(path: str, output: Output | None) -> None:
    assert output_of(path) is output


def test_crawlers_are_counted_by_name_and_all_others_as_one() -> None:
    readers = OutputReaders(ManualClock())
    for agent in (GPT, "curl/8", "", GPT, "Mozilla/5.0 Firefox"):
        readers.note(Output.TOPICS, agent)
    readers.note(Output.OPML, GPT)
    assert told(readers) == [
        ("opml", "GPTBot", 1, 1),
        ("topics", "", 3, 3),
        ("topics", "GPTBot", 2, 2),
    ]


def test_an_hour_goes_after_two_hours_and_a_day_after_a_day() -> None:
    clock = ManualClock()
    readers = OutputReaders(clock)
    readers.note(Output.SITEMAP, "")
    clock.advance(3 * 3_600)
    readers.note(Output.SITEMAP, "")
    assert told(readers) == [("sitemap", "", 1, 2)]
    clock.advance(22 * 3_600)
    assert told(readers) == [("sitemap", "", 0, 1)]
    clock.advance(24 * 3_600)
    assert told(readers) == []
