"""``/api/audit``: what people and programs did to the hub."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.audit_trail import AuditTrail
from hub.services.token_authentication import WITHOUT_TOKEN, TokenService
from hub.web.api.selection_input import AGE, moment_named, place_of, read_place
from hub.web.audited_requests import SAFE_METHODS, operation_name
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes, every_operation
from hub.web.request_input import (
    LARGEST_ID,
    query_choice,
    query_limit,
    query_number,
)
from protocols.protocol_errors import InvalidValue
from storage.records import (
    Account,
    AuditFilter,
    AuditOutcome,
    AuditRecord,
    AuditSource,
    AuditTarget,
    TokenId,
    TokenScope,
)

AUDIT_LIST: Final = (
    Parameter(name="account", help="only what this account did, by its name"),
    Parameter(name="token", help="only what was done with this token", kind="integer"),
    Parameter(name="session", help="only what was done in this browser's session"),
    Parameter(
        name="source",
        help="only what was done by these means",
        choices=tuple(AuditSource),
    ),
    Parameter(name="operation", help="only this operation, by its operationId"),
    Parameter(name="without", help="all but this operation, by its operationId"),
    Parameter(
        name="target",
        help="only what was done to this kind of thing",
        choices=tuple(AuditTarget),
    ),
    Parameter(name="id", help="only what was done to the one of that id"),
    Parameter(
        name="outcome",
        help="only those with this outcome",
        choices=tuple(AuditOutcome),
    ),
    Parameter(name="since", help=f"only what was done since then: {AGE}"),
    Parameter(name="until", help=f"only what was done before then: {AGE}"),
    Parameter(name="before", help="next of the page before"),
)


async def query_audit(
    request: Request, tokens: TokenService, now: datetime
) -> AuditFilter:
    """The filter of the query. Raises `InvalidValue`."""
    query = request.query_params
    target = query_choice(request, "target", AuditTarget)
    account, id = query.get("account"), query_number(request, "id", 0, LARGEST_ID)
    if id and target is None:
        raise InvalidValue("target", "the kind of thing that id names")
    whose = await _account(tokens, account) if account else None
    return AuditFilter(
        account=whose.id if whose else None,
        token=TokenId(query_number(request, "token", 0, LARGEST_ID)) or None,
        session=query.get("session"),
        source=query_choice(request, "source", AuditSource),
        operation=query.get("operation"),
        without=query.get("without"),
        target=target,
        target_id=id or None,
        outcome=query_choice(request, "outcome", AuditOutcome),
        since=moment_named("since", query.get("since", ""), now),
        until=moment_named("until", query.get("until", ""), now),
    )


async def _account(tokens: TokenService, name: str) -> Account:
    """The account with that name; one name is for failed logins without a token."""
    nobody = WITHOUT_TOKEN.account
    return nobody if name == nobody.name else await tokens.account("account", name)


@cache
def audited_operations() -> Mapping[str, str]:
    """What each audited operation does, by its name in the audit trail.

    Of what both the API and pages do, the API's words are taken, or else those of the
    operator's pages.
    """
    found = [
        each
        for each in every_operation()
        if each.method not in SAFE_METHODS and not each.only_reads
    ]
    found.sort(key=lambda it: (isinstance(it, ApiOperation), "_account" not in it.id))
    said = {operation_name(each.id): each.summary for each in found}
    return dict(sorted(said.items()))


class AuditRecordJson(JsonObject):
    """What somebody did.

    ``token`` is null for the admin token, and without a token. ``session`` names a
    browser's session. ``operation`` is what was asked for, and ``summary`` says it in
    words. ``target_name``: the target's URL or address, or another name of it.
    ``status`` is that of the answer, or 0 if the connection was lost before.
    """

    id: int
    at: Time
    account: str
    token: int | None
    session: str
    address: str
    source: AuditSource
    operation: str
    summary: str
    target: AuditTarget | None
    target_id: int | None
    target_name: str
    status: int
    detail: str

    @classmethod
    def of_record(cls, record: AuditRecord) -> Self:
        return cls.of(
            record,
            account=record.account.name,
            summary=audited_operations().get(record.operation, ""),
        )


class AuditTrailJson(JsonObject):
    """A page of records, the latest first. ``next``: the ``before`` of the next page.

    A page that is short, or empty, need not be the last one.
    """

    records: list[AuditRecordJson]
    next: str | None


class AuditRoutes(Routes):
    tag = "audit"

    def __init__(self, trail: AuditTrail, tokens: TokenService, clock: Clock) -> None:
        self._trail = trail
        self._tokens = tokens
        self._clock = clock

    @ApiOperation(
        method="GET",
        path="/audit",
        id="list_audit_records",
        scope=TokenScope.ADMIN,
        summary="List who did what, the latest first",
        description="A page may be short, or empty, and not the last one. `account` is"
        " a name (`anonymous`: failed logins), `source` is `api`, `cli`, `pages`,"
        " `account pages` or `superfeedr`, `operation` an operationId, `without` all"
        " but that one; `target` (`feed`, `subscription`, `token`, …) goes with `id`;"
        " `outcome` is `done` (below 400), `refused` (400 to 499) or `failed` (above,"
        " or cut off).",
        answers={200: AuditTrailJson},
        query=(*AUDIT_LIST, PAGE[1]),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        page = await self._trail.page(
            await query_audit(request, self._tokens, self._clock.now()),
            before=read_place(request.query_params.get("before", "")),
            limit=query_limit(request),
        )
        return json_response(
            AuditTrailJson(
                records=[AuditRecordJson.of_record(each) for each in page.records],
                next=place_of(*page.next) if page.next else None,
            )
        )
