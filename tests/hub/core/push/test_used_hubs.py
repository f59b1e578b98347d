"""Hubs at which feeds are subscribed."""

from __future__ import annotations

import pytest

from hub.core.host_set import HostSet
from hub.core.push.used_hubs import UsedHubs

GOOD, BAD = "https://good.example/", "https://push.bad.example/"


@pytest.mark.parametrize(
    ("used", "left_out"),
    [
        (UsedHubs(), []),
        (UsedHubs(unused=HostSet(["bad.example"])), [BAD]),
        (UsedHubs(is_on=False), [GOOD, BAD]),
    ],
)
def test_all_are_used_but_those_of_listed_hosts_unless_it_is_off(
    used: UsedHubs, left_out: list[str]
) -> None:
    assert used.left_out([GOOD, BAD]) == left_out
    assert [used.include(each) for each in (GOOD, BAD)] == [
        each not in left_out for each in (GOOD, BAD)
    ]
