"""``/api/tokens`` and ``/api/login-links``: tokens of accounts, and links that log
in."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final, Self

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hub.services.operator_sessions import SessionService
from hub.services.token_authentication import CreateToken, TokenService
from hub.web.audited_requests import name_target, note_detail
from hub.web.authentication import principal_of
from hub.web.json_output import (
    JsonObject,
    Time,
    former_name,
    json_response,
)
from hub.web.operation import PAGE, ApiOperation, Parameter, Routes
from hub.web.request_input import (
    RequestBody,
    path_id,
    query_choice,
    query_page,
    read_body,
)
from protocols.protocol_errors import InvalidValue
from storage.records import AuditTarget, StoredToken, TokenFilter, TokenId, TokenScope


class TokenToAdd(RequestBody):
    """The body of ``POST /api/tokens``; ``scopes``: at least one."""

    account: str
    scopes: list[TokenScope] = msgspec.field(default_factory=list)
    label: str = ""
    value: str = ""
    rights: Annotated[list[TokenScope], former_name("scopes")] = msgspec.field(
        default_factory=list
    )

    def requested_scopes(self) -> frozenset[TokenScope]:
        """The scopes, by either name. Raises `InvalidValue` if both names are given."""
        if self.scopes and self.rights:
            raise InvalidValue("rights", "either rights or scopes, its present name")
        return frozenset(self.scopes or self.rights)


TOKEN_LIST: Final = (
    Parameter(name="account", help="only those of this account, by its name"),
    Parameter(
        name="scope",
        help="only those that may do this, and were not revoked",
        choices=tuple(TokenScope),
    ),
)


async def query_tokens(request: Request, tokens: TokenService) -> TokenFilter:
    """The filter of the query. Raises `InvalidValue`."""
    scope = query_choice(request, "scope", TokenScope)
    name = request.query_params.get("account")
    account = await tokens.account("account", name) if name else None
    return TokenFilter(account=account.id if account else None, scope=scope)


class TokenJson(JsonObject):
    """What is known of a token; the token itself is not."""

    id: int
    account: str
    scopes: list[TokenScope]
    label: str
    created_at: Time
    used_at: Time | None
    revoked_at: Time | None
    rights: Annotated[list[TokenScope], former_name("scopes")]

    @classmethod
    def of_token(cls, token: StoredToken, /, **more: str) -> Self:
        scopes = sorted(token.scopes)
        name = token.account.name
        return cls.of(token, account=name, scopes=scopes, rights=scopes, **more)


class CreatedTokenJson(TokenJson):
    """A new token. ``token``: the token itself, which is shown this once."""

    token: str


class TokensJson(JsonObject):
    """A page of tokens; ``next`` is the ``after`` of the following one."""

    tokens: list[TokenJson]
    next: int | None


class LoginLinkJson(JsonObject):
    """A link that logs a browser in, once.

    It leads to ``/admin``, or for a token without the scope `admin` to ``/account``.
    """

    url: str
    expires_at: Time


class TokenRoutes(Routes):
    tag = "tokens"

    def __init__(self, tokens: TokenService, sessions: SessionService) -> None:
        self._tokens = tokens
        self._sessions = sessions

    @ApiOperation(
        method="GET",
        path="/tokens",
        id="list_tokens",
        scope=TokenScope.ADMIN,
        summary="List the tokens of all accounts, without their values",
        description="Including revoked ones. `scope`: those that may do this, by it or"
        " by `admin`, and were not revoked.",
        answers={200: TokensJson},
        query=(*TOKEN_LIST, *PAGE),
        problems=(422,),
    )
    async def page(self, request: Request) -> Response:
        after, limit = query_page(request)
        wanted = await query_tokens(request, self._tokens)
        found = await self._tokens.page(wanted, after=TokenId(after), limit=limit)
        tokens = [TokenJson.of_token(each) for each in found.tokens]
        return json_response(TokensJson(tokens=tokens, next=found.next))

    @ApiOperation(
        method="POST",
        path="/tokens",
        id="create_token",
        scope=TokenScope.ADMIN,
        summary="Make a token; only this answer shows it",
        description="The body has `account` (an unknown name becomes an account; case"
        " does not matter), `scopes` (a list), and optionally `label`, and `value`"
        " (the token itself: 32 hexadecimal digits not in use).",
        answers={201: CreatedTokenJson},
        body=TokenToAdd(
            account="alice", scopes=[TokenScope.SUBSCRIBE, TokenScope.LIST]
        ),
    )
    async def add(self, request: Request) -> Response:
        body = await read_body(request, TokenToAdd)
        created = await self._tokens.create(
            CreateToken(
                account=body.account,
                scopes=body.requested_scopes(),
                label=body.label,
                value=body.value,
            )
        )
        name_target(request, AuditTarget.TOKEN, created.token.id)
        note_detail(request, f"may {', '.join(sorted(created.token.scopes))}")
        return json_response(
            CreatedTokenJson.of_token(created.token, token=created.secret),
            HTTPStatus.CREATED,
            is_secret=True,
        )

    @ApiOperation(
        method="DELETE",
        path="/tokens/{id}",
        id="revoke_token",
        scope=TokenScope.ADMIN,
        summary="Revoke a token",
        answers={200: TokenJson},
        problems=(404,),
    )
    async def revoke(self, request: Request) -> Response:
        token_id = TokenId(path_id(request, "token"))
        return json_response(TokenJson.of_token(await self._tokens.revoke(token_id)))

    @ApiOperation(
        method="POST",
        path="/login-links",
        id="create_login_link",
        scope=TokenScope.LIST,
        summary="Make a link that logs a browser in to the hub's pages, once",
        description="To `/admin`, or to `/account` if the token lacks the scope"
        " `admin`; within five minutes.",
        answers={201: LoginLinkJson},
    )
    async def make_link(self, request: Request) -> Response:
        """Make a link. The session it begins ends with the token that made the link."""
        link = await self._sessions.make_link(principal_of(request))
        return json_response(LoginLinkJson.of(link), HTTPStatus.CREATED, is_secret=True)
