from __future__ import annotations

import httpx2
import pytest

from tests.support.operator_browser import OperatorBrowser


@pytest.fixture
def visitor(anybody: httpx2.AsyncClient) -> OperatorBrowser:
    """A browser without a session."""
    return OperatorBrowser(anybody)


@pytest.fixture
async def browser(visitor: OperatorBrowser) -> OperatorBrowser:
    """One that is logged in with the admin token."""
    assert (await visitor.log_in()).status_code == 303
    return visitor
