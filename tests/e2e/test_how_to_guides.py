"""The guides for operators hold: their lines are run, as far as a test can.

`RUN` says of every example of a guide what runs it, so a new one must be run as well.
That commands and options of ``fanfare`` are there, `tests/test_docs.py` looks at for
all of them, and that each example can be read as what it is.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.support.command import TOKEN, fanfare, knowing
from tests.support.stage import Stage, open_stage
from tests.support.typed_examples import ROOT

GUIDES = ROOT / "docs" / "how-to"
INSTALLS = "nobody: pip asks an index; test_docs looks for the extra"
RUN = {
    "backups.md": ["sh"],
    "bulk.md": ["sh", "sh", "sh"],
    "container.md": [
        "nobody: it needs Compose; test_container reads the files",
        "nobody: it needs a builder; the page says what was run by hand",
        "the password below; the rest as the first",
    ],
    "disk-space.md": ["sh"],
    "explain-a-document.md": ["sh"],
    "generated-clients.md": ["nobody: npm asks a registry", "test_generated_client"],
    "look-after-feeds.md": ["sh"],
    "measure.md": [".ci/run, the smallest round"],
    "monitoring.md": ["test_prometheus_finds_the_hub", INSTALLS + ", test_traces"],
    "postgresql.md": [
        INSTALLS + ", test_on_postgres",
        "test_copying",
        "nobody: it is PostgreSQL's own backup",
        "below, on an empty directory",
    ],
    "proxies.md": ["test_proxies"],
    "python-client.md": [INSTALLS, *["test_fanfare_client"] * 4],
    "receivers.md": ["test_receivers"],
    "simulate-polling.md": ["test_simulate_command"] * 2,
    "systemd.md": ["below, but for pip and systemctl"],
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


@pytest.mark.once("they back up a file")
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


def typed(text: str, directory: Path) -> None:
    """Type lines in a shell that stops at the first that fails."""
    subprocess.run(["sh", "-eu"], input=text, text=True, check=True, cwd=directory)


def test_what_systemd_is_to_find_is_put_where_the_unit_looks(tmp_path: Path) -> None:
    [text] = examples("systemd.md")
    pip, *lines, reload, enable = text.splitlines()
    assert "/opt/fanfare" in pip
    assert reload.startswith("systemctl")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    script = "\n".join(lines).replace("/etc/", f"{tmp_path}/etc/")
    typed(script, ROOT)
    units = {each.name for each in (tmp_path / "etc/systemd/system").iterdir()}
    assert units == set(enable.split()[3:])
    unit = (tmp_path / "etc/systemd/system/fanfare.service").read_text()
    for name in ("admin-token", "fanfare.env"):
        assert f"/etc/fanfare/{name}" in unit
    token = tmp_path / "etc/fanfare/admin-token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text().strip()) > 40


def test_a_database_is_recovered_by_what_is_appended(tmp_path: Path) -> None:
    text = examples("postgresql.md")[3].replace("/backups/base", str(tmp_path))
    typed(text, tmp_path)
    assert (tmp_path / "recovery.signal").exists()
    settings = (tmp_path / "postgresql.auto.conf").read_text()
    assert "recovery_target_action = 'promote'" in settings


def test_the_password_of_the_composition_can_be_read_by_both(tmp_path: Path) -> None:
    (tmp_path / "scripts/container").mkdir(parents=True)
    typed(examples("container.md")[2].splitlines()[0], tmp_path)
    password = tmp_path / "scripts/container/postgres-password"
    assert password.stat().st_mode & 0o777 == 0o644
    assert len(password.read_text().strip()) == 32


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_lines_of_the_reference(stage: Stage) -> None:
    """`curl` of its pages; streams without an end are cut off after a second."""
    _, feed = await stage.add_feed()
    mine = await stage.api.create_token("me", "subscribe", "list", "retrieve")
    await stage.api.subscribe(
        callback="https://me.example/", topic=stage.publisher.url(feed), account="me"
    )
    places = {
        "$(cat ~/.local/state/fanfare/admin-token)": TOKEN,
        "http://localhost:8080": stage.hub.url,
        "https://example.org/feed.xml": stage.publisher.url(feed),
        "me:TOKEN": f"me:{mine}",
    }
    found = {}
    for page in ("http-api", "retrieval", "live"):
        text = (ROOT / "docs/reference" / f"{page}.md").read_text()
        [block] = re.findall(r"(?ms)^```sh\n(.*?)^```", text)
        for named, real in places.items():
            block = block.replace(named, real)
        for line in block.replace("\\\n", " ").splitlines():
            _, *words = shlex.split(line)
            if "fanfare" not in line.split()[0]:
                found[page, words[-1]] = await curl("-m", "1", *words)
    assert len(found) == 5
    assert set(found.values()) <= {"200", "201"}, found


async def curl(*words: str) -> str:
    """The status that a request of curl was answered with."""
    process = await asyncio.create_subprocess_exec(
        *("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", *words),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return out.decode()
