"""What requests leave in the audit trail: who did what to what, and how it ended.

`AuditRequests` writes one record of each request that may change something and that
somebody with a token, or with a session, has made. What is known of the request is
gathered in its `AuditDraft`: routes name the operation
(`hub.web.operation.Routes.routes`), authentication names the principal, and handlers
add what the path does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hub.runtime.clock import Clock
from hub.services.audit_trail import AuditTrail
from hub.services.token_authentication import Principal
from hub.web.rate_limits import RateLimits
from protocols.protocol_errors import InvalidValue
from storage.records import AuditRecord, AuditSource, AuditTarget

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
COMMAND_AGENT: Final = "fanfare-cli/"
"""How the User-Agent of the command line begins."""
LONGEST_TEXT: Final = 500
"""The longest name and the longest description of a change, in characters."""
_SECRETS: Final = re.compile(r"(?<=://)[^\s/@]*@|\?[^\s,;]+")
"""Credentials in URLs, and the queries of URLs."""
_SCOPE_KEY: Final = "fanfare.audit"
_VARIANT: Final = re.compile(r"(?:_of_page|_of_account|_to_account)+$")
"""Endings that page operations add to the id of the API operation that does the
same."""
_WITH_ID: Final = re.compile(r"([\w-]+)/\{id\}")
KIND_OF_PATH: Final[Mapping[str, AuditTarget]] = {
    "connections": AuditTarget.CONNECTION,
    "live": AuditTarget.CONNECTION,
    "playground": AuditTarget.PLAYGROUND,
    "dead-letters": AuditTarget.DEAD_LETTER,
    "feeds": AuditTarget.FEED,
    "imports": AuditTarget.IMPORT,
    "plans": AuditTarget.PLAN,
    "subscriptions": AuditTarget.SUBSCRIPTION,
    "tokens": AuditTarget.TOKEN,
    "watched-lists": AuditTarget.WATCHED_LIST,
}
"""The kind of target that ``{id}`` names, by the path segment before it; `OTHER` if the
segment is not listed."""


@dataclass(slots=True)
class AuditDraft:
    """What is known of a request so far.

    ``operation`` "": the request changes nothing. ``principal`` None: nobody has shown
    who they are.
    """

    operation: str = ""
    principal: Principal | None = None
    source: AuditSource = AuditSource.API
    session: str = ""
    target: AuditTarget | None = None
    target_id: int | None = None
    target_name: str = ""
    detail: str = ""


def draft_of(request: HTTPConnection) -> AuditDraft:
    """The draft of a request; a new one, which nobody reads, if it is not audited."""
    draft = request.scope.get(_SCOPE_KEY)
    return draft if isinstance(draft, AuditDraft) else AuditDraft()


def name_operation(
    request: HTTPConnection, id: str, path: str, parameters: Mapping[str, object]
) -> None:
    """Note which operation is requested: its id, and the target that its path names."""
    draft = draft_of(request)
    draft.operation = operation_name(id)
    if found := _WITH_ID.search(path):
        draft.target = KIND_OF_PATH.get(found[1], AuditTarget.OTHER)
        number = str(parameters.get("id", ""))
        is_number = number.isascii() and number.isdigit() and len(number) < 19
        draft.target_id = int(number) if is_number else None


def operation_name(id: str) -> str:
    """The operation's name in the audit trail, the same for pages and the API."""
    return _VARIANT.sub("", id)


def name_target(
    request: HTTPConnection, target: AuditTarget, id: int | None, name: str = ""
) -> None:
    """Note the target of an operation whose path does not name it."""
    draft = draft_of(request)
    draft.target, draft.target_id, draft.target_name = target, id, name


def note_detail(request: HTTPConnection, detail: str) -> None:
    """Note what was done or changed, in a few words without secrets."""
    draft_of(request).detail = detail


def note_refusal(request: HTTPConnection, error: Exception, reason: str) -> None:
    """Note why nothing was done, unless a detail is noted already.

    What was entered is left out, and of URLs what may be a secret.
    """
    if isinstance(error, InvalidValue):
        reason = f"{error.field}: expected {error.expected}"
    draft = draft_of(request)
    draft.detail = draft.detail or _SECRETS.sub("", reason)


def said_changes(**changes: object) -> str:
    """Return changes in words: ``category: "news", private: yes``.

    Values of None are left out; pass True in place of a secret.
    """
    return ", ".join(
        f"{name.replace('_', ' ')}: {_said(value)}"
        for name, value in changes.items()
        if value is not None
    )


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


class AuditRequests:
    """ASGI middleware: records requests in the audit trail once they are answered.

    Refusals are recorded too, except those for too many requests. ``covers`` says
    whether a request may change something.
    """

    def __init__(
        self,
        app: ASGIApp,
        trail: AuditTrail,
        limits: RateLimits,
        clock: Clock,
        covers: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._trail = trail
        self._limits = limits
        self._clock = clock
        self._covers = covers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._covers(scope):
            await self._app(scope, receive, send)
            return
        scope[_SCOPE_KEY] = draft = AuditDraft()
        status = 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception:  # it is answered outside of this
            status = HTTPStatus.INTERNAL_SERVER_ERROR.value
            raise
        finally:
            self._note(draft, HTTPConnection(scope), status)

    def _note(self, draft: AuditDraft, request: HTTPConnection, status: int) -> None:
        principal = draft.principal
        is_refused = status == HTTPStatus.TOO_MANY_REQUESTS
        if principal is None or not draft.operation or is_refused:
            return
        source = draft.source
        agent = request.headers.get("user-agent", "")
        if source is AuditSource.API and agent.startswith(COMMAND_AGENT):
            source = AuditSource.CLI
        self._trail.note(
            AuditRecord(
                at=self._clock.now(),
                account=principal.account,
                token=principal.token,
                is_admin=principal.is_admin,
                session=draft.session,
                address=self._limits.client(request),
                source=source,
                operation=draft.operation,
                target=draft.target,
                target_id=draft.target_id,
                target_name=draft.target_name[:LONGEST_TEXT],
                status=status,
                detail=draft.detail[:LONGEST_TEXT],
            )
        )
