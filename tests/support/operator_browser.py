"""A browser of an operator or a subscriber, as far as the hub's pages notice one.

It keeps the cookie, says where a request comes from, and sends forms with their hidden
fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx2
import lxml.html

from tests.support.admin import TOKEN

OPENED = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Site": "none"}
FROM_A_PAGE = {**OPENED, "Sec-Fetch-Site": "same-origin"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "{{ 7 * 1907 }}{% raw %}",
    "</title></table><style>*{display:none}</style>",
    "\u202egnp.exe",
]
"""Texts that would do something in a page that did not escape them."""


@dataclass
class OperatorBrowser:
    client: httpx2.AsyncClient

    async def open(self, path: str) -> httpx2.Response:
        return await self.client.get(path, headers=OPENED)

    async def send(self, path: str, **fields: str | list[str]) -> httpx2.Response:
        """Post a form as a page of the hub does."""
        return await self.client.post(path, data=fields, headers=FROM_A_PAGE)

    async def log_in(
        self, token: str = TOKEN, pages: str = "/admin"
    ) -> httpx2.Response:
        return await self.send(f"{pages}/login", token=token)

    async def form_token(self, pages: str = "/admin") -> str:
        """The token in the forms of this session."""
        page = read(await self.open(pages))
        return str(page.xpath("//input[@name='form_token']/@value")[0])


def read(answer: httpx2.Response) -> lxml.html.HtmlElement:
    """The page, without places where a line may end: they would part its texts."""
    page = lxml.html.fromstring(answer.text)
    lxml.etree.strip_tags(page, "wbr")
    return page


def text_of(answer: httpx2.Response) -> str:
    return " ".join(read(answer).text_content().split())


def rows(answer: httpx2.Response) -> list[list[str]]:
    """The texts of the cells of all tables, by row."""
    return [
        [" ".join(" ".join(cell.itertext()).split()) for cell in row]
        for row in read(answer).xpath("//tbody/tr")
    ]
