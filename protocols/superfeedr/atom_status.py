"""The status block as an element, its children in the order of Superfeedr's own."""

from __future__ import annotations

from typing import Final

from protocols.model import Status
from protocols.superfeedr.atom_values import date_element
from protocols.superfeedr.xml import XmlWriter

SUPERFEEDR: Final = "http://superfeedr.com/xmpp-pubsub-ext"


def put_status(
    writer: XmlWriter,
    status: Status,
    *,
    topic: str,
    has_generated_ids: bool = False,
    is_digest: bool = False,
) -> None:
    """``http`` is always there; the rest only when it is known."""
    digest = b' digest="true"' if is_digest else b""
    code = b"" if status.code is None else b' code="%d"' % status.code
    count = status.entries_count_since_last_maintenance
    writer.parts += (b'<status feed="', topic)
    writer.parts += (
        b'"%b xmlns="%b"><http%b>' % (digest, SUPERFEEDR.encode(), code),
        status.http,
        b"".join(
            (
                b"</http>",
                date_element(b"next_fetch", status.next_fetch),
                _number(b"entries_count_since_last_maintenance", count),
                _number(b"velocity", status.velocity),
                _number(b"popularity", status.popularity),
                _number(b"porn_rank", status.porn_rank),
                _number(b"bozo_rank", status.bozo_rank),
                b"<generated_ids>true</generated_ids>" if has_generated_ids else b"",
            )
        ),
        "",
    )
    writer.put_element(b"title", status.title)
    writer.put(
        b"".join(
            (
                _number(b"period", status.period),
                date_element(b"last_fetch", status.last_fetch),
                date_element(b"last_parse", status.last_parse),
                date_element(b"last_maintenance_at", status.last_maintenance_at),
                b"</status>",
            )
        )
    )


def _number(tag: bytes, value: float | None) -> bytes:
    return b"" if value is None else b"<%b>%b</%b>" % (tag, str(value).encode(), tag)
