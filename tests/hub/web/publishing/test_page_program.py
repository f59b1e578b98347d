"""The page's program, run on a stand-in for a document where there is a Node.

Where there is none they are skipped; `tests/e2e/test_page.py` needs a browser instead.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / "hub" / "web" / "pages" / "page.js"
STAND_IN = ROOT / "tests" / "data" / "page_in_node.js"
NODE = shutil.which("node") or ""

pytestmark = pytest.mark.skipif(not NODE, reason="Node is not installed")


def run(*events: dict[str, Any]) -> dict[str, Any]:
    """What the page shows after those events."""
    done = subprocess.run(
        [NODE, str(STAND_IN), str(PROGRAM), json.dumps(events)],
        capture_output=True,
        check=True,
        timeout=60,
    )
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def notification(*items: dict[str, Any], title: str = "A feed") -> dict[str, Any]:
    body = {"title": title, "items": list(items)}
    message = {"type": "notification", "topic": "https://a.example/", "body": body}
    return {"name": "notification", "data": message}


def test_it_asks_for_the_listed_topics_in_one_request() -> None:
    shown = run()
    assert shown["url"] == "/stream?topic=https%3A%2F%2Fa.example%2F%3Fx%3D1%26y%3D2"


def test_new_entries_come_first_and_link_only_to_the_web() -> None:
    shown = run(
        notification({"title": "one", "permalinkUrl": "https://a.example/1"}),
        notification(
            {"title": "<b>two</b>", "permalinkUrl": "javascript:alert(1)"},
            {"id": "three"},
            {"id": "gone", "verb": "delete"},
        ),
    )
    assert shown["entries"] == [
        ["span", "three", None, "A feed"],
        ["span", "<b>two</b>", None, "A feed"],
        ["a", "one", "https://a.example/1", "A feed"],
    ]


def test_a_notification_without_entries_shows_nothing() -> None:
    status = {"name": "notification", "data": {"body": {"status": {"code": 0}}}}
    atom = {"name": "notification", "data": {"body": "<feed/>"}}
    assert run(status, atom)["entries"] == []


def test_what_is_shown_is_bounded() -> None:
    items = [{"title": str(number)} for number in range(150)]
    shown = run(notification(*items))["entries"]
    assert [each[1] for each in shown] == [str(n) for n in range(149, 49, -1)]


@pytest.mark.parametrize(
    ("name", "ready_state", "said"),
    [
        ("open", 1, "Listening."),
        ("error", 0, "The connection was lost; trying again."),
        ("error", 2, "Live entries are not available here"),
    ],
)
def test_it_says_how_the_connection_is(name: str, ready_state: int, said: str) -> None:
    event = {"name": name, "data": None, "readyState": ready_state}
    assert run(event)["state"].startswith(said)
