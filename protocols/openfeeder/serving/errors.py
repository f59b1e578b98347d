"""Errors as OpenFeeder tells them (OpenFeeder 8)."""

from __future__ import annotations

from enum import StrEnum

from protocols.errors import InvalidValue, ProtocolError


class ErrorCode(StrEnum):
    """Section 8 and, for parameters, section 3.4."""

    NOT_FOUND = "NOT_FOUND"
    RATE_LIMITED = "RATE_LIMITED"
    AUTH_REQUIRED = "AUTH_REQUIRED"
    SERVER_ERROR = "SERVER_ERROR"
    INVALID_PARAM = "INVALID_PARAM"


class OpenFeederError(ProtocolError):
    """A request that cannot be answered as asked; the message is for people."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code = code
        super().__init__(message)


def invalid_parameter(name: str, expected: str, value: str = "") -> OpenFeederError:
    text = str(InvalidValue(name, expected, value))
    return OpenFeederError(ErrorCode.INVALID_PARAM, text)
