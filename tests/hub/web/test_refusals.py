"""What is refused, at all doors: a page for a browser that opens it, a problem document
for programs, and for both the same status."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from hub.web.problems import PROBLEM_TYPE
from tests.support.live_hub import live_hub
from tests.support.operator_browser import OPENED, read, text_of
from tests.support.services import Hub

PAGE = "text/html; charset=utf-8"
PROGRAMS = {
    "any": {"Accept": "*/*"},
    "JSON": {"Accept": "application/json"},
    "feeds": {"Accept": "application/atom+xml, */*;q=0.5"},
    "none": {},
}
DOORS = [
    ("/nothing", 404),
    ("/nothing.php", 404),
    ("/topics/9", 404),
    ("/topics/9.atom", 404),
    ("/topics/entries/9", 404),
    ("/docs/api/nothing", 404),
    ("/assets/nothing", 404),
    ("/problems/nothing", 404),
    ("/scp/nothing", 404),
    ("/hub", 405),
    ("/rpc", 405),
    ("/topics?search=x", 422),
    ("/topics?before=x", 422),
    ("/topics/x.json", 404),
]


@pytest.mark.parametrize(("path", "status"), DOORS)
async def test_a_browser_gets_a_page_and_a_program_a_problem(
    anybody: httpx2.AsyncClient, path: str, status: int
) -> None:
    page = await anybody.get(path, headers=OPENED)
    assert (page.status_code, page.headers["content-type"]) == (status, PAGE)
    assert f"Status {status}" in text_of(page)
    assert "/" in read(page).xpath("//main//a/@href")
    for headers in PROGRAMS.values():
        problem = await anybody.get(path, headers=headers)
        assert problem.status_code == status
        assert problem.headers["content-type"] == PROBLEM_TYPE
        assert problem.headers["vary"] == "Accept"
        assert problem.json()["status"] == status


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/nothing", 401), ("/api/feeds", 401), ("/stream?topic=x", 422)],
)
async def test_a_door_of_programs_answers_a_browser_as_them(
    anybody: httpx2.AsyncClient, path: str, status: int
) -> None:
    accepts = {"Accept": "text/event-stream"} if path.startswith("/stream") else OPENED
    answer = await anybody.get(path, headers=accepts)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        PROBLEM_TYPE,
    )


async def test_a_request_of_another_site_with_a_header_of_the_browser_is_a_403(
    anybody: httpx2.AsyncClient,
) -> None:
    foreign = {"Origin": "https://evil.example", "Authorization": "Basic eDp5"}
    opened = {**OPENED, "Accept": "text/html, */*;q=0.8"}
    path = "/stream?topic=https://a.example/feed"
    page = await anybody.get(path, headers={**opened, **foreign})
    assert (page.status_code, page.headers["content-type"]) == (403, PAGE)
    problem = await anybody.get(path, headers=foreign)
    assert (problem.status_code, problem.headers["content-type"]) == (403, PROBLEM_TYPE)


@pytest.mark.parametrize(
    "path", ["/", "/search?q=one", "/topics", "/topics/1", "/topics/1.atom"]
)
async def test_a_hub_whose_storage_fails_says_when_to_try_again(
    anybody: httpx2.AsyncClient, hub: Hub, path: str
) -> None:
    await hub.storage.close()
    for headers, kind in ((OPENED, PAGE), ({}, PROBLEM_TYPE)):
        answer = await anybody.get(path, headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.headers["content-type"] == kind


async def test_a_request_of_the_hub_itself_is_a_508_that_is_no_page(
    anybody: httpx2.AsyncClient,
) -> None:
    own = {"User-Agent": "Fanfare/1 (+http://hub.example/about)"}
    answer = await anybody.get("/", headers={**OPENED, **own})
    assert answer.status_code == 508
    assert answer.headers["content-type"] == PROBLEM_TYPE


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/topics/1", 404),
        ("/admin/feeds", 404),
        ("/api/feeds", 404),
    ],
)
async def test_a_websocket_is_refused_with_a_problem(
    tmp_path: Path, path: str, status: int
) -> None:
    async with live_hub(tmp_path) as hub:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{hub.port}{path}")
    answer = refused.value.response
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        PROBLEM_TYPE,
    )
    assert json.loads(answer.body)["status"] == status
