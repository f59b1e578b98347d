from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hub.cli import main
from tests.support.fake_api import FakeApi, serving

Fanfare = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving(FakeApi()) as api:
        yield api


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str | None]:
    """Variables for a command that has nothing to do with this machine's hub."""
    return {"FANFARE_DATABASE": f"sqlite:{tmp_path / 'data' / 'hub.db'}"}


@pytest.fixture
def alone(environment: dict[str, str | None]) -> Fanfare:
    """Run ``fanfare`` where no hub is."""

    def fanfare(
        *arguments: str, input: bytes | None = None, **variables: str
    ) -> Result:
        variables = {**environment, **variables}
        return CliRunner().invoke(main, arguments, input=input, env=variables)

    return fanfare


@pytest.fixture
def fanfare(api: FakeApi, alone: Fanfare) -> Fanfare:
    """Run ``fanfare`` with the fake hub to speak to."""

    def fanfare(
        *arguments: str, input: bytes | None = None, **variables: str
    ) -> Result:
        known = {"FANFARE_PUBLIC_URL": api.url, "FANFARE_ADMIN_TOKEN": "token"}
        return alone(*arguments, input=input, **{**known, **variables})

    return fanfare
