"""Types of problems, each with a stable URL, and a page there that explains it.

RFC 9457, 3.1.1: "Consumers MUST use the 'type' URI [...] as the problem type's primary
identifier." A relative one, "it is RECOMMENDED that" it "include the full path".
"""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Final

PROBLEMS_PATH: Final = "/problems"


class ProblemType(StrEnum):
    """A problem type; the value is the last part of its URL."""

    MALFORMED_REQUEST = "malformed-request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    INSUFFICIENT_SCOPE = "insufficient-scope"
    HUB_CLOSED = "hub-closed"
    NOT_SIGNED = "not-signed"
    SEARCH_OFF = "search-off"
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
    """The problem type of a status, for errors without a more specific one."""
    return _OF_STATUS.get(status, ProblemType.INTERNAL_ERROR)


EXPLANATIONS: Final = {
    ProblemType.MALFORMED_REQUEST: "The request cannot be read: its body is not JSON,"
    " or ended early. The detail says where.",
    ProblemType.UNAUTHORIZED: "A token is needed, or the one that was sent is invalid"
    " or revoked. Send Authorization: Bearer TOKEN.",
    ProblemType.FORBIDDEN: "The hub refuses this request, for example because a page of"
    " another site sent it. The detail says why. Repeating it does not help.",
    ProblemType.INSUFFICIENT_SCOPE: "The token lacks a scope, which the detail and the"
    " WWW-Authenticate header name. The operator makes tokens.",
    ProblemType.HUB_CLOSED: "The open hub is disabled (FANFARE_OPEN_HUB). Ask the"
    " operator for a token.",
    ProblemType.NOT_SIGNED: "Content from a publisher must be signed with the secret"
    " that the operator has set for its feed.",
    ProblemType.SEARCH_OFF: "The hub keeps no search index (FANFARE_SEARCH_DAYS=0)."
    " Retrieve the entries of a topic, or subscribe to a track query.",
    ProblemType.NOT_FOUND: "It does not exist, or the token may not see it.",
    ProblemType.METHOD_NOT_ALLOWED: "The path does not support this method. The Allow"
    " header names those it supports.",
    ProblemType.NOT_ACCEPTABLE: "None of the types in Accept is available.",
    ProblemType.TIMEOUT: "The body did not arrive in time. Send it again.",
    ProblemType.CONFLICT: "The present state does not allow this. The detail says which"
    " state, and what to do first.",
    ProblemType.GONE: "It existed and is gone for good. Do not request it again.",
    ProblemType.TOO_LARGE: "The body is too large. Send less at once.",
    ProblemType.UNSUPPORTED_MEDIA_TYPE: "The Content-Type is not supported. The detail"
    " names the expected one.",
    ProblemType.INVALID_VALUE: "A parameter or a member of the body is invalid: field"
    " names it, and the detail says what was expected.",
    ProblemType.ADDRESS_REFUSED: "The URL leads to a private address or to a port of"
    " another service, to which the hub does not connect. The operator can allow the"
    " network with the setting that the detail names.",
    ProblemType.NOT_CONFIRMED: "The callback was asked whether it wants the"
    " subscription, and did not confirm. Correct the callback and subscribe again.",
    ProblemType.NOT_ALLOWED: "The topic's publisher refuses the subscription.",
    ProblemType.TOO_MANY_REQUESTS: "The rate limit is exceeded. Retry-After says how"
    " many seconds to wait, RateLimit-Policy what the limit is.",
    ProblemType.TOO_MANY_WAITING: "Too many requests of this kind are waiting. Try"
    " again after Retry-After.",
    ProblemType.UNAVAILABLE: "The hub cannot do this now: its disk fails, or it is"
    " stopping. Nothing was changed. Try again after Retry-After.",
    ProblemType.LOOP: "The request comes from this hub, which neither reads nor"
    " delivers to itself.",
    ProblemType.INTERNAL_ERROR: "An internal error. The hub's log has details. Please"
    " report it.",
}
