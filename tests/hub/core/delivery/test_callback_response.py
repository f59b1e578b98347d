from __future__ import annotations

import pytest

from hub.core.delivery.delivery_outcome import CallbackResponse, Verdict


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.DELIVERED),
        (202, Verdict.DELIVERED),
        (204, Verdict.DELIVERED),
        (299, Verdict.DELIVERED),
        (410, Verdict.GONE),
        (0, Verdict.FAILED),
        (301, Verdict.FAILED),
        (308, Verdict.FAILED),
        (404, Verdict.FAILED),
        (429, Verdict.FAILED),
        (500, Verdict.FAILED),
    ],
)
def test_only_2xx_is_success_and_only_410_ends_a_subscription(
    status: int, verdict: Verdict
) -> None:
    assert CallbackResponse(status=status, milliseconds=1).verdict is verdict
