"""Answers as they arrive on one connection, each within bounds. No I/O.

The bytes are parsed by llhttp, through httptools. It is as lenient with sloppy servers
as browsers and aiohttp are: obsolete line folding, LF without CR, spaces behind a
chunk's size. It never guesses the length of a body (RFC 9112, 6.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from hub.http.decompression import Decompressor
from hub.http.exchange import BodyAllowance, BodySink
from hub.http.network_errors import BadAnswer, NetworkError, TooLarge

Field = tuple[bytes, bytes]
"""A name in lower case, and a value without white space around it."""

_SINGULAR = frozenset(
    {
        *("age", "content-length", "content-type", "date", "etag", "expires"),
        *("last-modified", "location", "retry-after", "set-cookie"),
        *("x-ratelimit-reset",),
    }
)
"""Fields that are not lists: joining two of them would make a value that nobody
sent."""


class AnswerHeaders(Mapping[str, str]):
    """Headers by name, in any case.

    RFC 9110 5.3: "A recipient MAY combine multiple field lines within a field section
    that have the same field name into one field line […] by appending each subsequent
    field line value to the initial field line value in order, separated by a comma".
    For a field that is not a list, the first line counts.

    Bytes that are not UTF-8 become surrogates (``surrogateescape``). The fields are
    stored undecoded, since most answers are never asked for any.
    """

    __slots__ = ("_fields", "_values")

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._values: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._combined()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._combined())

    def __len__(self) -> int:
        return len(self._combined())

    def _combined(self) -> dict[str, str]:
        if self._values is None:
            lines: dict[str, list[str]] = {}
            for field, value in self._fields:
                name = str(field, "latin-1")
                if name not in lines or name not in _SINGULAR:
                    text = str(value, "utf-8", "surrogateescape")
                    lines.setdefault(name, []).append(text)
            self._values = {name: ", ".join(each) for name, each in lines.items()}
        return self._values


class SinkWriter:
    """Like `hub.http.decompression.Decompressor`; raises TooLarge above ``limit``
    bytes."""

    def __init__(self, sink: BodySink, limit: int) -> None:
        self._sink = sink
        self._limit = limit
        self._bytes = 0

    def feed(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > self._limit:
            raise TooLarge(self._limit)
        self._sink.write(piece)

    def finish(self) -> bytes:
        return b""


MOST_HEADERS = 128
LONGEST_HEADER = 8_190
"""The most bytes of a header's name and value."""
MOST_FRAMING = 256 * 1024
"""Bytes of an answer that are not body: interim answers, head, chunk sizes,
trailers."""
MOST_UNWANTED_FRAMING = 64 * 1024
"""The same limit for an answer of which only the status matters, however long its
body."""
_FRAMING_PER_BYTE = 16  # of body; a chunk of one byte takes five more

NOT_HTTP = "the answer is not valid HTTP"
NOT_WHOLE = "the answer ended early or is not valid HTTP"
NO_ANSWER = "the server closed the connection without an answer"


class ResponseParser:
    """Parses one answer after the other; `expect` begins each.

    ``status`` is 0 until the head of a final answer has arrived; ``reason`` is its
    reason phrase, and ``version`` the HTTP version, "" if it arrived in too small a
    piece. Once the answer is over, ``body`` holds the wanted part, and ``is_whole``
    says whether that is all of it. ``is_clean``: the answer ended where it said,
    nothing came after it, and the server keeps the connection.
    """

    __slots__ = (
        "_allowance",
        "_body_bytes",
        "_cut",
        "_ended",
        "_fed_bytes",
        "_fields",
        "_inflation",
        "_is_kept_alive",
        "_limit",
        "_overran",
        "_parser",
        "_pieces",
        "_sink",
        "body",
        "is_clean",
        "is_whole",
        "reason",
        "status",
        "version",
    )

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self.expect(cut=0, limit=None)

    def expect(
        self,
        *,
        cut: int,
        limit: int | None,
        sink: BodySink | None = None,
        allowance: BodyAllowance | None = None,
    ) -> None:
        """Begin an answer of which the first ``cut`` bytes of body are wanted; errors
        in the rest are not failures.

        With ``limit``, a 2xx answer is wanted whole, decompressed, and no larger than
        that; with ``sink``, it is written there as it arrives. Memory held for it is
        taken from the ``allowance``.
        """
        self._allowance = allowance
        self._sink = sink
        self.status = 0
        self.reason = self.version = b""
        self._fields: list[Field] = []
        self.body = b""
        self.is_whole = self.is_clean = False
        self._cut = cut
        self._limit = limit
        self._inflation: Decompressor | SinkWriter | None = None
        self._pieces: list[bytes] = []
        self._fed_bytes = self._body_bytes = 0
        self._ended = self._overran = self._is_kept_alive = False

    def forget(self) -> None:
        """Release everything large: the connection may be kept for some time."""
        self.body = b""
        self._pieces = []
        self._inflation = self._allowance = None

    def close(self) -> None:
        """End: no more bytes follow. Breaks the cycle between this object and the
        parser."""
        del self._parser

    @property
    def headers(self) -> AnswerHeaders:
        return AnswerHeaders(self._fields)

    @property
    def has_begun(self) -> bool:
        """Whether any byte of the answer has arrived."""
        return self._fed_bytes > 0

    def feed(self, data: bytes) -> bool:
        """Parse these bytes; returns whether the answer is over.

        Raises BadAnswer and TooLarge, with the status if that has arrived.
        """
        if not self._fed_bytes:
            self.version = data[5:8]  # behind "HTTP/"
        self._fed_bytes += len(data)
        had_begun = self.status > 0
        is_broken = self._fails_to_parse(data) or self._has_too_much_framing
        try:
            if self.status and not had_begun:
                self._open_body()
            if self._pieces and self._is_filled():
                return True
            if self._ended:
                self._finish()
                self.is_clean = self._is_kept_alive and not self._overran
                return True
        except NetworkError as error:
            error.status = self.status
            raise
        if is_broken:
            return self.stop(BadAnswer(NOT_WHOLE if self.status else NOT_HTTP))
        return False

    def end(self) -> bool:
        """The server has closed the connection properly. Raises BadAnswer."""
        if not self.status or self._has_known_end:
            return self.stop(BadAnswer(NOT_WHOLE if self.status else NO_ANSWER))
        try:
            self._finish()
        except NetworkError as error:
            error.status = self.status
            raise
        return True

    def stop(self, error: NetworkError) -> bool:
        """End the answer here: returns True, or raises the error if the status is not
        enough."""
        if self.status and self._inflation is None:
            self.body = b"".join(self._pieces)
            return True
        error.status = self.status
        raise error

    # --- called by the parser ----------------------------------------------------

    def on_message_begin(self) -> None:
        self._overran = self._ended

    def on_status(self, reason: bytes) -> None:
        if not self.status:
            self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer, or what comes after the answer
        value = value.rstrip(b" \t")  # llhttp strips what is before it
        is_long = len(name) + len(value) > LONGEST_HEADER
        if is_long or len(self._fields) >= MOST_HEADERS or b"\0" in value:
            raise ValueError
        # llhttp leaves the blanks that some servers put before the colon
        self._fields.append((name.rstrip(b" ").lower(), value))

    def on_headers_complete(self) -> None:
        if self._ended:
            return
        status = self._parser.get_status_code()
        if status < 100:
            raise ValueError
        if status < 200 and status != 101:
            self.reason = b""
            self._fields.clear()  # RFC 9110, 15.2: "one or more 1xx responses"
        else:
            self.status = status

    def on_body(self, piece: bytes) -> None:
        if not self._ended:
            self._body_bytes += len(piece)
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        if self.status and not self._ended:
            self._ended = True
            self._is_kept_alive = self._parser.should_keep_alive()

    # -----------------------------------------------------------------------------

    def _fails_to_parse(self, data: bytes) -> bool:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._overran = True  # what follows is another protocol
        except HttpParserError:
            self._overran = True
            return not self._ended
        return False

    @property
    def _has_too_much_framing(self) -> bool:
        if self._ended:
            return False
        allowed = MOST_UNWANTED_FRAMING
        if self._limit is not None:
            allowed = MOST_FRAMING + _FRAMING_PER_BYTE * self._body_bytes
        return self._fed_bytes - self._body_bytes > allowed

    @property
    def _has_known_end(self) -> bool:
        """Whether the body's end is known. RFC 9112, 6.3: without the chunked coding
        and a length, the end of the connection is the end of the body."""
        codings = [text for name, text in self._fields if name == b"transfer-encoding"]
        if codings:
            return codings[-1].rpartition(b",")[2].strip().lower() == b"chunked"
        return self._value(b"content-length") is not None

    def _open_body(self) -> None:
        if self._limit is None or not 200 <= self.status <= 299:
            return
        if int(self._value(b"content-length") or 0) > self._limit:
            raise TooLarge(self._limit)
        if self._sink is not None:
            self._inflation = SinkWriter(self._sink, self._limit)
            return
        # Two servers in a row that name the same coding have mostly coded once.
        named = [text for name, text in self._fields if name == b"content-encoding"]
        coding = b", ".join(dict.fromkeys(named)).decode("latin-1")
        self._inflation = Decompressor(coding, self._limit, self._allowance)

    def _is_filled(self) -> bool:
        """Add the pieces that have arrived; returns whether that is all that is
        wanted."""
        if self._inflation is not None:
            for piece in self._pieces:
                self._inflation.feed(piece)
            self._pieces.clear()
            return False
        if self._body_bytes <= self._cut:
            return False
        self.body = b"".join(self._pieces)[: self._cut]
        return True

    def _finish(self) -> None:
        whole = self._inflation
        self.body = whole.finish() if whole is not None else b"".join(self._pieces)
        self.is_whole = True

    def _value(self, name: bytes) -> bytes | None:
        return next((value for each, value in self._fields if each == name), None)
