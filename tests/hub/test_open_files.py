"""As many connections as the system allows, and never more."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hub.open_files import MOST_FILES, fit_connections, raise_limit
from hub.settings import Settings
from tests.support.hub_process import HubProcess

SETTINGS = Settings(
    poll_concurrency=64, delivery_concurrency=256, stream_connections=10_000
)


@pytest.fixture
def few_files() -> Iterator[int]:
    """A low soft limit, which processes that are started inherit; the hard one."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    yield MOST_FILES if limits[1] == resource.RLIM_INFINITY else limits[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_soft_limit_is_raised_to_the_hard_one(few_files: int) -> None:
    assert raise_limit() == few_files
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == few_files
    assert raise_limit() == few_files


@pytest.mark.parametrize(
    ("files", "connections"),
    [(20_000, 10_000), (4_096, 3_264), (1_024, 256), (400, 100)],
)
def test_live_connections_leave_files_for_everything_else(
    files: int, connections: int
) -> None:
    with capture_logs() as logs:
        assert fit_connections(SETTINGS, files).stream_connections == connections
    limited = [each for each in logs if each["event"] == "stream_connections_limited"]
    assert bool(limited) is (connections < SETTINGS.stream_connections)
    assert logs[-1] == {
        "event": "open_files_allowed",
        "log_level": "info",
        "files": files,
        "live_connections": connections,
    }


async def test_a_hub_raises_its_limit_and_says_how_much_there_is_room_for(
    tmp_path: Path, few_files: int
) -> None:
    async with HubProcess(tmp_path) as hub:
        soft, _hard = resource.prlimit(hub.pid, resource.RLIMIT_NOFILE)
        await hub.terminate()
    assert soft == few_files
    (said,) = [line for line in hub.log if "open_files_allowed" in line]
    assert f"files={few_files}" in said
