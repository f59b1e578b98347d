"""``scripts/screenshots``: the pages of a hub that runs ``fanfare demo``, as pictures
for ``docs/images``.

A minute of its entries is waited for, and some of what goes wrong elsewhere is added by
the pages themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from playwright.async_api import Browser, Page
from playwright.async_api import Error as BrowserError

from tests.support.chromium import PROGRAM, Scheme, open_chromium

DEMO_SECONDS: Final = 240
WIDTH, HEIGHT = 1_200, 800
PHONE: Final = 400
NOBODY: Final = "http://127.0.0.1:9/callback"
"""Where nobody answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """``links``: selectors that are followed one after the other from ``path``."""

    name: str
    path: str
    links: tuple[str, ...] = ()
    scheme: Scheme = "light"
    width: int = WIDTH
    height: int = HEIGHT


_FIRST_ROW: Final = "tbody tr th a"
PICTURES: Final = (
    Picture(name="overview", path="/admin", height=1_300),
    Picture(name="overview-dark", path="/admin", scheme="dark", height=1_000),
    Picture(name="overview-phone", path="/admin", width=PHONE),
    Picture(name="feed", path="/admin/feeds", links=(_FIRST_ROW,), height=1_500),
    Picture(
        name="subscription",
        path="/admin/subscriptions?state=ok",
        links=(_FIRST_ROW,),
    ),
    Picture(name="deliveries", path="/admin/deliveries", height=1_100),
    Picture(name="entries", path="/admin/entries", height=1_100),
    Picture(name="live", path="/admin/live"),
    Picture(
        name="playground",
        path="/admin/playground",
        links=("button:text('Run all steps')",),
        height=1_000,
    ),
    Picture(name="readers", path="/"),
)


async def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 if a page is not there, or there is no browser."""
    wanted = _arguments(arguments)
    if PROGRAM is None:
        print("no Chromium is installed", file=sys.stderr)
        return 1
    async with running_demo() as link, open_chromium() as browser:
        page = await _log_in(browser, link)
        await _let_fail(page, link)
        await asyncio.sleep(wanted.seconds * 2 / 3)
        await _pause(page, link, wanted.seconds / 6)
        await asyncio.sleep(wanted.seconds / 6)
        missing = [
            each.name
            for each in PICTURES
            if wanted.only in ("", each.name)
            and not await _take(page, link, each, wanted.directory)
        ]
    for name in missing:
        print(f"{name}: no such page", file=sys.stderr)
    return 1 if missing else 0


@asynccontextmanager
async def running_demo() -> AsyncIterator[str]:
    """The link to its pages."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "hub.cli", "demo"),
        *("--seconds", str(DEMO_SECONDS)),
        stdin=DEVNULL,
        stdout=PIPE,
    )
    reading = None
    try:
        link = await _link_of(process)
        reading = asyncio.create_task(_read_on(process))
        yield link
    finally:
        process.terminate()
        await process.wait()
        if reading is not None:
            await reading


async def _link_of(process: Process) -> str:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    async for line in process.stdout:
        _, is_link, _code = line.decode().partition("/admin/login?link=")
        if is_link:
            return line.decode().split()[-1]
    raise RuntimeError("the demo ended without a link to its pages")


async def _read_on(process: Process) -> None:
    """Else it would wait for somebody to read what it prints."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    async for _ in process.stdout:
        pass


async def _log_in(browser: Browser, link: str) -> Page:
    page = await browser.new_page()
    await page.goto(link)
    await page.get_by_role("button", name="Log in").click()
    return page


async def _let_fail(page: Page, link: str) -> None:
    """An account with a token, and a callback of it that nobody answers at."""
    await page.goto(urljoin(link, "/admin/tokens"))
    await page.get_by_placeholder("alice").fill("alice")
    await page.get_by_role("textbox", name="Label").fill("the reader app")
    for scope in ("subscribe", "list"):
        await page.locator(f"input[name={scope}]").check()
    await page.get_by_role("button", name="Make it").click()
    token = await page.get_by_role("status").locator("code").inner_text()
    await page.goto(urljoin(link, "/admin/feeds"))
    topic = await page.locator("tbody tr .url").first.inner_text()
    answer = await page.request.post(
        urljoin(link, "/api/subscriptions"),
        headers={"Authorization": f"Bearer {token}"},
        data={"topic": topic, "callback": NOBODY, "format": "json"},
    )
    if not answer.ok:
        raise RuntimeError(await answer.text())


async def _pause(page: Page, link: str, seconds: float) -> None:
    """Pause the first feed of the list for a while."""
    await page.goto(urljoin(link, "/admin/feeds"))
    await page.locator(_FIRST_ROW).first.click()
    await page.get_by_role("button", name="Pause", exact=True).click()
    await asyncio.sleep(seconds)
    await page.get_by_role("button", name="Resume").click()


async def _take(page: Page, link: str, picture: Picture, directory: Path) -> bool:
    """False if there is no such page."""
    await page.set_viewport_size({"width": picture.width, "height": picture.height})
    await page.emulate_media(color_scheme=picture.scheme)
    answer = await page.goto(urljoin(link, picture.path))
    if answer is None or not answer.ok:
        return False
    try:
        for each in picture.links:
            await page.locator(each).first.click(timeout=5_000)
    except BrowserError:
        return False
    await page.screenshot(path=directory / f"{picture.name}.png")
    return True


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="only the one of that name")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="how long the demo runs before the pictures are taken",
    )
    parser.add_argument("--directory", type=Path, default=Path("docs/images"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
