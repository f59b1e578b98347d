"""Which callbacks the judge of the soak takes for subscribed."""

from __future__ import annotations

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from tests.soak.members import Member, Members, Membership

IN, OUT, UNKNOWN = Membership.IN, Membership.OUT, Membership.UNKNOWN
LISTED = {"a": 7}


def answered(status: int) -> aiohttp.ClientResponseError:
    url, headers = URL("http://hub.example"), CIMultiDictProxy(CIMultiDict[str]())
    asked = aiohttp.RequestInfo(url, "POST", headers, url)
    return aiohttp.ClientResponseError(asked, (), status=status)


def ask(member: Member, wanted: Membership, error: BaseException | None = None) -> None:
    with member.becoming(wanted):
        if error is not None:
            raise error


@pytest.mark.parametrize(("before", "wanted"), [(OUT, IN), (IN, OUT)])
def test_what_the_hub_acknowledged_or_refused_is_known(
    before: Membership, wanted: Membership
) -> None:
    member = Member("a", membership=before)
    with pytest.raises(aiohttp.ClientResponseError):
        ask(member, wanted, answered(503))
    assert member.membership is before
    ask(member, wanted)
    assert member.membership is wanted


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ServerDisconnectedError(),
        TimeoutError(),
        KeyboardInterrupt(),
        answered(500),
    ],
)
@pytest.mark.parametrize("listed", [{}, LISTED])
def test_what_it_did_not_answer_is_looked_up_once_and_holds_from_then_on(
    error: BaseException, listed: dict[str, int]
) -> None:
    members = Members()
    with pytest.raises(type(error)):
        ask(members.add("a"), IN, error)
    assert members.all["a"].membership is UNKNOWN

    assert not list(members.look(listed))
    assert (members.subscribed, members.looked_up) == (len(listed), 1)
    other = {} if listed else LISTED
    assert len(list(members.look(other))) == 1
    assert members.looked_up == 1


@pytest.mark.parametrize(
    ("membership", "listed"), [(OUT, LISTED), (IN, {}), (OUT, {"b": 1})]
)
def test_a_list_that_is_not_what_was_answered_is_a_broken_promise(
    membership: Membership, listed: dict[str, int]
) -> None:
    members = Members({"a": Member("a", membership=membership)})
    assert len(list(members.look(listed))) == 1


def test_the_id_of_one_that_was_never_answered_comes_from_the_list() -> None:
    members = Members({"a": Member("a", membership=UNKNOWN)})
    assert not list(members.look(LISTED))
    assert members.all["a"].id == 7
