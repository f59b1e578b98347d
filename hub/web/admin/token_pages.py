"""``/admin/tokens``: which accounts there are, and what each of their tokens may do."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.services.token_authentication import (
    CreatedToken,
    CreateToken,
    TokenPage,
    TokenService,
)
from hub.web.admin.page_access import (
    OperatorPages,
    PageAccess,
    redirect,
    viewer_of,
    without_blanks,
)
from hub.web.api.token_routes import TOKEN_LIST, query_tokens
from hub.web.audited_requests import name_target, note_detail, note_refusal
from hub.web.operation import HTML, PAGE, Operation
from hub.web.page_rendering import render_page
from hub.web.request_input import LARGEST_ID, path_id, query_number
from hub.websub.topic_admission import OpenHub
from protocols.protocol_errors import InvalidValue
from storage.records import AuditTarget, TokenId, TokenScope

ROWS: Final = 50
"""Tokens on a page."""


@dataclass(frozen=True, slots=True)
class TokenRefusal:
    """Why no token was made, and what was entered for it."""

    asked: CreateToken
    reason: str


class TokenPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        tokens: TokenService,
        open_hub: OpenHub,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._open_hub = open_hub
        self._tokens = tokens
        self._clock = clock

    @Operation(
        method="GET",
        path="/admin/tokens",
        id="get_tokens_page",
        summary="The tokens of all accounts, and what each of them may do",
        answers={200: {HTML: str}, 303: None},
        query=(*TOKEN_LIST, PAGE[0]),
        problems=(403, 422, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        return await self._page(request)

    @Operation(
        method="POST",
        path="/admin/tokens",
        id="create_token_of_page",
        summary="Make a token; only this answer shows it",
        answers={201: {HTML: str}, 303: None},
        problems=(403, 422, 429, 503),
    )
    async def create(self, request: Request) -> Response:
        form = viewer_of(request).form
        asked = CreateToken(
            account=form.get("account", ""),
            scopes=frozenset(each for each in TokenScope if each in form),
            label=form.get("label", ""),
        )
        try:
            created = await self._tokens.create(asked)
        except InvalidValue as error:
            note_refusal(request, error, "")
            reason = _REASONS.get(error.field, f"Its {error.field}: {error.expected}.")
            return await self._page(request, refusal=TokenRefusal(asked, reason))
        name_target(request, AuditTarget.TOKEN, created.token.id)
        note_detail(request, f"may {', '.join(sorted(created.token.scopes))}")
        return await self._page(request, created)

    @Operation(
        method="POST",
        path="/admin/tokens/{id}/revoke",
        id="revoke_token_of_page",
        summary="Revoke a token",
        answers={303: None},
        problems=(403, 404, 429, 503),
    )
    async def revoke(self, request: Request) -> Response:
        await self._tokens.revoke(TokenId(path_id(request, "token")))
        return redirect("/admin/tokens?done=revoked")

    async def _found(self, asked: Request, after: TokenId) -> TokenPage:
        """The tokens of a page; none if the account asked for does not exist."""
        try:
            wanted = await query_tokens(asked, self._tokens)
        except InvalidValue as error:
            if error.field != "account":
                raise
            return TokenPage(tokens=(), next=None)
        return await self._tokens.page(wanted, after=after, limit=ROWS)

    async def _page(
        self,
        request: Request,
        created: CreatedToken | None = None,
        refusal: TokenRefusal | None = None,
    ) -> Response:
        status = HTTPStatus.CREATED if created else HTTPStatus.OK
        asked = without_blanks(request)
        after = query_number(asked, "after", 0, LARGEST_ID)
        found = await self._found(asked, TokenId(after))
        return render_page(
            "tokens.html",
            status=HTTPStatus.UNPROCESSABLE_ENTITY if refusal else status,
            section="Accounts",
            viewer=viewer_of(request),
            now=self._clock.now(),
            rows=found.tokens,
            next=found.next,
            is_first=not after,
            query={
                name: value
                for name, value in asked.query_params.items()
                if name not in ("after", "done")
            },
            scopes=SCOPES_IN_WORDS,
            open_hub=self._open_hub,
            created=created,
            refusal=refusal,
            is_revoked=request.query_params.get("done") == "revoked",
        )


_REASONS: Final = {
    "account": "Name its account, in 1 to 64 letters, digits, dots, hyphens and"
    " underscores.",
    "scopes": "Tick at least one thing that it may do.",
}
"""What is to be mended, by the field."""
SCOPES_IN_WORDS: Final = (
    (TokenScope.SUBSCRIBE, "subscribe callbacks"),
    (TokenScope.UNSUBSCRIBE, "end subscriptions"),
    (TokenScope.LIST, "list subscriptions"),
    (TokenScope.RETRIEVE, "read topics, live and what there was"),
    (TokenScope.ADMIN, "everything, for every account"),
)
"""Scopes, and what a token with each may do."""
