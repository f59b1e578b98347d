"""A request that fails says how far it had come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest

from hub.http import HttpNetwork, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError
from protocols.http import RequestStage
from tests.support.broken_networks import black_hole
from tests.support.certificates import server_context
from tests.support.http_server import Origin, ServerAnswer

LOOPBACK = (ip_network("127.0.0.0/8"),)
QUICK = ResponseLimits(seconds=1.0, idle_seconds=0.3)


@dataclass
class Progress:
    stage: RequestStage = RequestStage.QUEUED


async def _no_address(host: str) -> Sequence[str]:
    raise OSError


@pytest.fixture
async def network() -> AsyncIterator[HttpNetwork]:
    async with HttpNetwork(allow_callbacks=LOOPBACK, lookup=_no_address) as network:
        yield network


def request_to(url: str, progress: Progress) -> Request:
    return Request(
        method="POST",
        url=url,
        purpose=Purpose.CALLBACK,
        body=b"news",
        limits=QUICK,
        cuts_body=True,
        progress=progress,
    )


async def failed_at(network: HttpNetwork, url: str) -> RequestStage:
    progress = Progress()
    with pytest.raises(NetworkError):
        await network.send(request_to(url, progress))
    return progress.stage


async def test_a_name_without_address_fails_at_dns(network: HttpNetwork) -> None:
    assert await failed_at(network, "http://nowhere.example/") is RequestStage.DNS


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://127.1/"])
async def test_what_is_not_allowed_fails_at_the_guard(
    network: HttpNetwork, url: str
) -> None:
    assert await failed_at(network, url) is RequestStage.GUARD


async def test_nobody_listening_or_accepting_fails_at_connecting(
    network: HttpNetwork,
) -> None:
    with socket.socket() as closed, black_hole() as hole:
        closed.bind(("127.0.0.1", 0))
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        assert await failed_at(network, refusing) is RequestStage.CONNECT
        assert await failed_at(network, f"{hole}/") is RequestStage.CONNECT


async def test_no_tls_a_wrong_certificate_and_silence_fail_at_tls(
    network: HttpNetwork, tmp_path: Path
) -> None:
    async def hear_nothing(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(hear_nothing, "127.0.0.1", 0)
    certified = Origin(tls=server_context(tmp_path))
    async with silent, Origin() as plain, certified as untrusted:
        ports = (plain.port, untrusted.port, silent.sockets[0].getsockname()[1])
        for port in ports:
            url = f"https://127.0.0.1:{port}/"
            assert await failed_at(network, url) is RequestStage.TLS


@pytest.mark.parametrize(
    ("answer", "stage"),
    [
        (ServerAnswer(silent=True), RequestStage.FIRST_BYTE),
        (ServerAnswer(raw=b"", closes=True), RequestStage.FIRST_BYTE),
        (ServerAnswer(raw=b"SSH-2.0\r\n"), RequestStage.HEAD),
        (ServerAnswer(raw=b"HTTP/1.1 500 Oh"), RequestStage.HEAD),
    ],
)
async def test_an_answer_that_does_not_come_fails_where_it_stopped(
    network: HttpNetwork, answer: ServerAnswer, stage: RequestStage
) -> None:
    async with Origin() as origin:
        origin.serve("/", answer)
        assert await failed_at(network, origin.url("/")) is stage


async def test_one_that_is_cut_short_says_it_too(network: HttpNetwork) -> None:
    progress = Progress()
    with black_hole() as hole:
        sending = asyncio.create_task(network.send(request_to(hole, progress)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait({sending})
    assert progress.stage is RequestStage.CONNECT


async def test_an_answer_has_its_status_line_and_whether_its_network_is_exempt(
    network: HttpNetwork,
) -> None:
    async with Origin() as origin:
        raw = b"HTTP/1.0 503 Out to Lunch\r\nContent-Length: 0\r\n\r\n"
        origin.serve("/", ServerAnswer(raw=raw))
        answer = await network.send(request_to(origin.url("/"), Progress()))
    assert answer.status_line == "HTTP/1.0 503 Out to Lunch"
    assert answer.is_exempt
