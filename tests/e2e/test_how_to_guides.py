"""The guides for operators hold: their lines of ``fanfare`` are run against a hub.

`RUN` says of every example of a guide what runs it, so a new one must be run as well.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.support.command import fanfare, knowing
from tests.support.stage import Stage, open_stage
from tests.support.typed_examples import ROOT

GUIDES = ROOT / "docs" / "how-to"
BY_NOBODY = "nobody: it needs what a test has not"
RUN = {
    "backups.md": ["sh"],
    "bulk.md": ["sh", "sh", "sh"],
    "container.md": [BY_NOBODY] * 3,
    "disk-space.md": ["sh"],
    "explain-a-document.md": ["sh"],
    "generated-clients.md": [BY_NOBODY, "test_generated_client"],
    "look-after-feeds.md": ["sh"],
    "measure.md": [".ci/run, the smallest round"],
    "monitoring.md": ["test_prometheus_finds_the_hub", BY_NOBODY],
    "postgresql.md": [BY_NOBODY, "test_copying", BY_NOBODY, BY_NOBODY],
    "proxies.md": ["test_proxies"],
    "python-client.md": [BY_NOBODY, *["test_fanfare_client"] * 4],
    "receivers.md": ["test_receivers"],
    "simulate-polling.md": ["test_simulate_command"] * 2,
    "systemd.md": [BY_NOBODY],
    "upgrading.md": ["test_upgrades"] * 2,
}


def examples(page: str) -> list[str]:
    text = (GUIDES / page).read_text()
    return re.findall(r"(?ms)^```\w+\n(.*?)^```", text)


def lines_of(page: str) -> list[list[str]]:
    """Words of each line, from ``fanfare`` on."""
    lines = "".join(examples(page)).splitlines()
    words = (shlex.split(each, comments=True) for each in lines)
    return [each[each.index("fanfare") + 1 :] for each in words]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage


def test_every_example_is_run_by_somebody() -> None:
    counts = {each.name: len(examples(each.name)) for each in GUIDES.glob("*.md")}
    assert {page: len(by) for page, by in RUN.items()} == +Counter(counts)


async def test_the_lines_of_operators(stage: Stage, tmp_path: Path) -> None:
    _, feed = await stage.add_feed()
    stands_for = {
        "https://example.org/feed.xml": stage.publisher.url(feed),
        "/var/backups/": f"{tmp_path}/",
    }

    async def run(words: list[str]) -> str:
        for named, real in stands_for.items():
            words = [each.replace(named, real) for each in words]
        done = await fanfare(*words, variables=knowing(stage.hub))
        assert done.code == 0, (words, done.out + done.err)
        return done.out

    explain, history = [await run(each) for each in lines_of("look-after-feeds.md")]
    assert "it is new" in explain
    assert "first fetch" in history
    _, why = [await run(each) for each in lines_of("explain-a-document.md")]
    assert "read by" in why
    for words in lines_of("bulk.md"):
        await run(words)
    health, compact = lines_of("disk-space.md")
    assert "disk" in await run(health)
    serve, backup, check, restore = lines_of("backups.md")
    assert serve == ["serve"]
    await run(backup)
    await run(check)
    await stage.hub.terminate()
    await run(compact)
    await run(restore)


def test_prometheus_finds_the_hub_by_the_job_that_alerts_name() -> None:
    [config] = yaml.safe_load(examples("monitoring.md")[0])["scrape_configs"]
    alerts = yaml.safe_load((ROOT / "scripts/monitoring/alerts.yml").read_text())
    expressions = [it["expr"] for each in alerts["groups"] for it in each["rules"]]
    assert f'up{{job="{config["job_name"]}"}} == 0' in expressions
