"""The two renderings, whole, of one notification with everything in it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from protocols.model import Notification
from protocols.superfeedr.atom_notifications import (
    ATOM_TYPE,
    render_atom,
    render_entries,
)
from protocols.superfeedr.json_notifications import JSON_TYPE, render_items, render_json
from tests.support.superfeedr_example import EXAMPLE, TROUBLE

GOLDEN = Path(__file__).parents[2] / "data" / "superfeedr"
CASES = pytest.mark.parametrize(
    ("name", "notification"), [("example", EXAMPLE), ("trouble", TROUBLE)]
)


@CASES
def test_atom_is_as_documented(name: str, notification: Notification) -> None:
    one_tag_a_line = render_atom(notification).replace(b"><", b">\n<") + b"\n"
    assert one_tag_a_line == (GOLDEN / f"{name}.atom").read_bytes()


@CASES
def test_json_is_as_documented(name: str, notification: Notification) -> None:
    document = orjson.loads(render_json(notification))
    indented = orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
    assert indented == (GOLDEN / f"{name}.json").read_bytes()


@CASES
def test_what_all_topics_share_may_be_rendered_before(
    name: str, notification: Notification
) -> None:
    entries = render_entries(notification)
    assert render_atom(notification, entries) == render_atom(notification)
    items = render_items(notification)
    assert render_json(notification, items) == render_json(notification)


def test_media_types_are_superfeedrs_to_the_letter() -> None:
    assert ATOM_TYPE == "application/atom+xml"
    assert JSON_TYPE == "application/json; charset=utf-8"
