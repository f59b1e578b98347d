"""The guide to generated clients: its client is generated, checked and run.

Nothing is downloaded. ``FANFARE_TEST_NODE_MODULES`` names a folder ``node_modules``
that has what the guide installs; without it this is skipped.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support.admin import TOKEN
from tests.support.stage import open_stage
from tests.support.typed_examples import ROOT

MODULES = os.environ.get("FANFARE_TEST_NODE_MODULES", "")  # an absolute path
GUIDE = ROOT / "docs" / "how-to" / "generated-clients.md"


async def run(*command: str, folder: Path, **variables: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


@pytest.mark.skipif(
    not (MODULES and shutil.which("node")),
    reason="needs node, and FANFARE_TEST_NODE_MODULES",
)
async def test_the_client_of_the_guide_adds_a_feed_and_lists_its_entries(
    tmp_path: Path,
) -> None:
    text = GUIDE.read_text()
    (program,) = re.findall(r"(?ms)^```ts\n(.*?)^```", text)
    (options,) = re.findall(r"openapi\.json (.*-o fanfare\.d\.ts)", text)
    project = tmp_path / "client"
    project.mkdir()
    (project / "node_modules").symlink_to(MODULES)
    (project / "package.json").write_text('{"type": "module"}')
    bin = project / "node_modules" / ".bin"
    async with open_stage(tmp_path) as stage:
        feed = stage.publisher.add_feed()
        (project / "client.ts").write_text(
            program.replace("https://hub.example", stage.hub.url).replace(
                "https://example.org/feed.xml", stage.publisher.url(feed)
            )
        )
        document = f"{stage.hub.url}/api/openapi.json"
        generate = (f"{bin}/openapi-typescript", document, *options.split())
        await run(*generate, folder=project)
        check = ("--strict", "--module", "esnext", "--moduleResolution", "bundler")
        types = ("--target", "es2022", "--types", "node", "client.ts")
        await run(f"{bin}/tsc", *check, *types, folder=project)
        printed = await run("node", "client.js", folder=project, TOKEN=TOKEN)

    assert printed.startswith("Entry 1")
