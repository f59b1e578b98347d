"""Errors of the protocols package.

ProtocolError
├── FeedError                  a document that cannot be read as a feed
│   ├── EmptyDocument
│   ├── NotAFeed               readable, but something else (HTML names its feeds)
│   ├── MalformedDocument      line, column and cause
│   ├── InvalidDocument        well-formed, but not as its format has it: where, and why
│   ├── UnsupportedVersion     of a format that is known otherwise
│   └── LimitExceeded          which limit, its value, and the line where it is known
└── InvalidValue               a parameter, header or URL: field, value, expectation
"""

from __future__ import annotations

from dataclasses import dataclass


class ProtocolError(Exception):
    """Input that a protocol or format forbids."""


class FeedError(ProtocolError):
    """The document cannot be read as a feed."""


class EmptyDocument(FeedError):
    """The document is empty."""

    def __init__(self) -> None:
        super().__init__("the document is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLink:
    """A feed that a page names: ``<link rel=alternate>`` and the like."""

    href: str
    title: str = ""
    type: str = ""


HTML_PAGE = "an HTML page"


class NotAFeed(FeedError):
    """The document is something else: ``found`` says what, ``feeds`` what it names."""

    def __init__(self, found: str, feeds: tuple[FeedLink, ...] = ()) -> None:
        self.found = found
        self.feeds = feeds
        named = ", ".join(feed.href for feed in feeds)
        super().__init__(
            f"this is {found}, not a feed"
            + (f"; the page names: {named}" if named else "")
        )

    @property
    def is_page(self) -> bool:
        """Whether it is a page for people, which may belong to a site with feeds."""
        return self.found == HTML_PAGE


class MalformedDocument(FeedError):
    """The document breaks the rules of its own syntax."""

    def __init__(self, cause: str, line: int | None = None, column: int | None = None):
        self.cause = cause
        self.line = line
        self.column = column
        place = "" if line is None else f"line {line}: "
        super().__init__(f"{place}{cause}")


class InvalidDocument(FeedError):
    """A document of a known format that breaks its rules as a whole.

    ``pointer`` is a JSON pointer (RFC 6901), "" for the document itself; ``rule`` says
    what was expected there.
    """

    def __init__(self, pointer: str, rule: str) -> None:
        self.pointer = pointer
        self.rule = rule
        super().__init__(f"{pointer or 'the document'}: {rule}")


class UnsupportedVersion(FeedError):
    """A later version of a known format; older forms may be published beside it."""

    def __init__(self, format: str, version: str) -> None:
        self.format = format
        self.version = version
        super().__init__(f"version {version} of {format} is not supported")


class LimitExceeded(FeedError):
    """The document is larger, deeper or more intricate than a feed may be."""

    def __init__(self, what: str, limit: int, line: int | None = None) -> None:
        self.what = what
        self.limit = limit
        self.line = line
        place = "" if line is None else f"line {line}: "
        super().__init__(f"{place}{what} exceeds the limit of {limit}")


class InvalidValue(ProtocolError, ValueError):
    """A value from outside is not what the field takes."""

    def __init__(self, field: str, expected: str, value: str = "") -> None:
        self.field = field
        self.expected = expected
        self.value = value
        shown = f", not {value[:80]!r}" if value else ""
        super().__init__(f"{field}: expected {expected}{shown}")
