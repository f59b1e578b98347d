"""Chromium, driven by Playwright: what becomes of a page of the hub in it.

The system's own Chromium is used; none is downloaded. It makes no requests of its own,
only those of the pages that a test opens.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    async_playwright,
)

NAMES = (
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
"""Names of programs, the first that is installed counts.

To open a page takes a headless shell a third of the time.
"""
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--disable-dev-shm-usage"),
)
DESKTOP = 1200
PHONE = 360
"""The width of a phone's screen, in pixels."""
HEIGHT = 900
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
"""The path of Chromium; None where none is installed."""
Scheme = Literal["light", "dark"]
CONTRAST = "color-contrast"
"""A rule of Axe."""

in_a_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")


@asynccontextmanager
async def open_chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=PROGRAM, args=list(FLAGS)
        )
        yield browser
        await browser.close()


@dataclass
class Tab:
    """One page of a browser.

    ``complaints``: what a developer would see in red in the console (errors, warnings,
    exceptions, breaches of the Content-Security-Policy), dialogs, which no page of the
    hub opens, and requests to other origins.
    """

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear_console)
        self.page.on("pageerror", self._hear_error)
        self.page.on("dialog", self._hear_dialog)
        self.page.on("request", self._hear_request)

    async def open(self, path: str) -> int:
        """Open a path of the hub; return the status of the answer."""
        answer = await self.page.goto(f"{self.origin}{path}")
        assert answer is not None
        return answer.status

    async def see(self, *, width: int = DESKTOP, scheme: Scheme = "light") -> None:
        """Have a screen of that width, whose owner prefers that colour scheme."""
        await self.page.set_viewport_size({"width": width, "height": HEIGHT})
        await self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    async def overflowing(self) -> list[str]:
        """What makes the page wider than its window; [] if nothing does."""
        found: list[str] = await self.page.evaluate(OVERFLOWING)
        return found

    async def inaccessible(self, *rules: str, without: Sequence[str] = ()) -> list[str]:
        """What Axe finds by these rules, or by all of its own."""
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = list(rules)
        options["rules"] = {each: {"enabled": False} for each in without}
        if not await self.page.evaluate("'axe' in globalThis"):
            await self.page.evaluate(AXE_SCRIPT)
        found: list[str] = await self.page.evaluate(FINDINGS, options)
        return found

    async def standstill(self) -> str:
        """What a live page says if it does not change although it should; or ""."""
        if not await self.page.locator("[data-live]").count():
            return ""
        await self.page.wait_for_function(MOVES)
        return await self.page.locator("[data-watch] [role=status]").inner_text()

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _hear_error(self, error: Error) -> None:
        self.complaints.append(f"exception: {error}")

    async def _hear_dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _hear_request(self, request: Request) -> None:
        scheme, host = urlsplit(request.url)[:2]
        if scheme != "data" and f"{scheme}://{host}" != self.origin:
            self.complaints.append(f"request to elsewhere: {request.url}")


async def new_tab(context: BrowserContext, origin: str) -> Tab:
    return Tab(await context.new_page(), origin)


OVERFLOWING = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const isCut = (node) => node && node !== document.body
    && (getComputedStyle(node).overflowX !== "visible" || isCut(node.parentElement));
  const wide = [...document.body.querySelectorAll("*")]
    .filter((node) => node.getBoundingClientRect().right > width + 1)
    .filter((node) => !isCut(node.parentElement))
    .map((node) => node.outerHTML.slice(0, 100));
  return [`${document.documentElement.scrollWidth} px`, ...wide.slice(-3)];
}"""
MOVES = """() => document.querySelector(
  "[data-watch=moving], [data-watch] [role=status]:not(:empty)")"""
FINDINGS = """async (options) => {
  const { violations } = await axe.run(options);
  const told = (node) => node.failureSummary.replaceAll(/\\s+/g, " ");
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.target.join(" ")}: ${told(node)}`));
}"""
