"""Pieces of XML, as a template of a publishing program would write them."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from html import escape

from scripts.benchmarks.documents.facts import Habits


def tag(name: str, text: str, attributes: str = "") -> str:
    """``<name>text</name>`` on a line of its own; "" for no text."""
    space = " " if attributes else ""
    return f"\t\t<{name}{space}{attributes}>{escape(text, quote=False)}</{name}>\n" * (
        text != ""
    )


def markup(name: str, html: str, habits: Habits, attributes: str = "") -> str:
    """An element whose text is HTML, escaped or in CDATA."""
    space = " " if attributes else ""
    text = escape(html) if habits.escapes else f"<![CDATA[{html}]]>"
    return f"\t\t<{name}{space}{attributes}>{text}</{name}>\n"


def mail_date(at: datetime | None, habits: Habits) -> str:
    """RFC 822, sometimes without a time."""
    if at is None:
        return ""
    return format_datetime(at) if habits.has_times else at.strftime("%d %b %Y")


def iso_date(at: datetime | None, habits: Habits) -> str:
    if at is None:
        return ""
    return at.isoformat().replace("+00:00", "Z") if habits.has_times else f"{at:%F}"
