from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from hub.settings import SETTINGS
from tests.support.restored_logs import restored_logs

Fanfare = Callable[..., Result]


@pytest.fixture(autouse=True)
def logging_is_restored() -> Iterator[None]:
    with restored_logs():
        yield


def test_every_setting_is_an_option_with_its_variable(alone: Fanfare) -> None:
    text = " ".join(alone("serve", "--help").stdout.split())
    for each in SETTINGS:
        assert f"{each.option} VALUE" in text
        assert f"[{each.variable}; default:" in text


def test_a_bad_value_is_wrong_usage(alone: Fanfare) -> None:
    result = alone("serve", "--log-level", "loud")
    assert result.exit_code == 2
    assert "--log-level: expected one of debug, info, warning, error" in result.stderr


def test_a_start_that_cannot_be_is_a_failure(alone: Fanfare, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = alone("serve", "--port", port)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("fanfare: cannot listen on 127.0.0.1 port")
    assert not (tmp_path / "data").exists()
