from __future__ import annotations

import pytest

import hub
from hub.ground import identity
from hub.polling.identity import Identity
from hub.settings import Settings

HUB = "https://hub.example"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(public_url=HUB, contact="me@hub.example"), id="both"),
        pytest.param(Settings(public_url=HUB), id="no-contact"),
        pytest.param(Settings(contact="me@hub.example"), id="no-public-url"),
    ],
)
def test_publishers_are_told_the_public_url_and_the_contact_that_are_set(
    settings: Settings,
) -> None:
    assert identity(settings) == Identity(
        product=f"Fanfare/{hub.__version__}",
        url=settings.public_url and f"{HUB}/about",
        contact=settings.contact,
    )
