"""``hub.mode=authenticate``: whether a token is good, and for what.

It is in no documentation of Superfeedr's, yet clients begin with it: some ask for the
status alone, others, by ``rights=true``, for ``subscribe`` in the answer.
"""

from __future__ import annotations

from starlette.responses import Response

from hub.web.superfeedr.answers import json_answer
from hub.web.superfeedr.calls import Call, Mode, Modes
from storage.records import Right

TOLD = (Right.SUBSCRIBE, Right.UNSUBSCRIBE, Right.LIST, Right.RETRIEVE)


def rights_modes() -> Modes:
    return {"authenticate": Mode(answer=answer_rights)}


async def answer_rights(call: Call) -> Response:
    """With or without ``rights=true``: who does not want them looks away."""
    return json_answer(call, {each.value: call.principal.may(each) for each in TOLD})
