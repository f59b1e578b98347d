"""Kinds of problems, each with a URL that stays, and a page there that explains it.

RFC 9457, 3.1.1: "Consumers MUST use the 'type' URI [...] as the problem type's primary
identifier." A relative one, "it is RECOMMENDED that" it "include the full path".
"""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Final

PROBLEMS_PATH: Final = "/problems"


class ProblemType(StrEnum):
    """The last part of its URL."""

    MALFORMED_REQUEST = "malformed-request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    INSUFFICIENT_SCOPE = "insufficient-scope"
    HUB_CLOSED = "hub-closed"
    NOT_SIGNED = "not-signed"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    NOT_ACCEPTABLE = "not-acceptable"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    GONE = "gone"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    INVALID_VALUE = "invalid-value"
    ADDRESS_REFUSED = "address-refused"
    NOT_CONFIRMED = "not-confirmed"
    NOT_ALLOWED = "not-allowed"
    TOO_MANY_REQUESTS = "too-many-requests"
    TOO_MANY_WAITING = "too-many-waiting"
    UNAVAILABLE = "unavailable"
    LOOP = "loop"
    INTERNAL_ERROR = "internal-error"

    @property
    def url(self) -> str:
        return f"{PROBLEMS_PATH}/{self}"


_OF_STATUS: Final = {
    HTTPStatus.BAD_REQUEST: ProblemType.MALFORMED_REQUEST,
    HTTPStatus.UNAUTHORIZED: ProblemType.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: ProblemType.FORBIDDEN,
    HTTPStatus.NOT_FOUND: ProblemType.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: ProblemType.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE: ProblemType.NOT_ACCEPTABLE,
    HTTPStatus.REQUEST_TIMEOUT: ProblemType.TIMEOUT,
    HTTPStatus.CONFLICT: ProblemType.CONFLICT,
    HTTPStatus.GONE: ProblemType.GONE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ProblemType.TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ProblemType.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY: ProblemType.INVALID_VALUE,
    HTTPStatus.TOO_MANY_REQUESTS: ProblemType.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE: ProblemType.UNAVAILABLE,
    HTTPStatus.LOOP_DETECTED: ProblemType.LOOP,
}


def type_of_status(status: HTTPStatus) -> ProblemType:
    """Where nothing more special is known."""
    return _OF_STATUS.get(status, ProblemType.INTERNAL_ERROR)


EXPLANATIONS: Final = {
    ProblemType.MALFORMED_REQUEST: "The request cannot be read: its body is no JSON, or"
    " ended early. The detail says where. Send it again once it is mended.",
    ProblemType.UNAUTHORIZED: "A token is needed, or the one that was sent is invalid"
    " or revoked. Send Authorization: Bearer TOKEN.",
    ProblemType.FORBIDDEN: "The hub does not do this for whoever asks, such as a page"
    " of another site. The detail says why; asking again does not help.",
    ProblemType.INSUFFICIENT_SCOPE: "The token is good, but lacks a scope. The detail"
    " and the WWW-Authenticate header name it; the operator makes tokens with it.",
    ProblemType.HUB_CLOSED: "The open hub is switched off (FANFARE_OPEN_HUB). Ask the"
    " operator for a token.",
    ProblemType.NOT_SIGNED: "Content that a publisher sends must be signed with the"
    " secret that the operator has set for its feed.",
    ProblemType.NOT_FOUND: "There is no such thing, or none that the token may see.",
    ProblemType.METHOD_NOT_ALLOWED: "The path is right, the method is not. The Allow"
    " header names those there are.",
    ProblemType.NOT_ACCEPTABLE: "None of the types that Accept names can be given.",
    ProblemType.TIMEOUT: "The body did not come in time. Send it again.",
    ProblemType.CONFLICT: "The thing is in a state that does not allow this; the detail"
    " says which, and what to do first.",
    ProblemType.GONE: "It was here, and will not be again. Do not ask for it any more.",
    ProblemType.TOO_LARGE: "The body has more bytes than are taken. Send less at once.",
    ProblemType.UNSUPPORTED_MEDIA_TYPE: "The Content-Type is another than the one"
    " that is expected, which the detail names.",
    ProblemType.INVALID_VALUE: "A parameter or a member of the body is not what it must"
    " be: field names it, and detail says what was expected.",
    ProblemType.ADDRESS_REFUSED: "The URL leads to a private address, or to a port of"
    " another service, which the hub does not connect to. The operator can allow the"
    " network by the setting that the detail names.",
    ProblemType.NOT_CONFIRMED: "The callback was asked whether it wants the"
    " subscription, and did not confirm. Mend the callback, and subscribe again.",
    ProblemType.NOT_ALLOWED: "The topic's publisher was asked, and refuses the"
    " subscription.",
    ProblemType.TOO_MANY_REQUESTS: "More requests than the limit allows. Retry-After"
    " says for how many seconds to wait, RateLimit-Policy what the limit is.",
    ProblemType.TOO_MANY_WAITING: "As much as is kept waits already. Ask again after"
    " Retry-After.",
    ProblemType.UNAVAILABLE: "The hub cannot do it now: its disk fails, or it is"
    " stopping. Nothing was changed; ask again after Retry-After.",
    ProblemType.LOOP: "The request is the hub's own: it neither reads itself nor"
    " delivers to itself.",
    ProblemType.INTERNAL_ERROR: "An error of the hub, of which its log says more."
    " Please report it.",
}
