from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from hub.runtime.logs import configure_logs
from tests.support.restored_logs import restored_logs


@pytest.fixture(autouse=True)
def logging_is_restored() -> Iterator[None]:
    with restored_logs():
        yield


def test_json_lines_carry_event_level_time_and_keys() -> None:
    out = io.StringIO()
    configure_logs("info", "json", out)
    structlog.get_logger().info("feed_fetched", feed=7, status=304)
    line = json.loads(out.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "feed_fetched",
        "level": "info",
        "feed": 7,
        "status": 304,
    }


def test_lines_of_libraries_look_the_same() -> None:
    out = io.StringIO()
    configure_logs("info", "json", out)
    logging.getLogger("somebody").warning("it happened %d times", 3)
    line = json.loads(out.getvalue())
    assert (line["event"], line["level"]) == ("it happened 3 times", "warning")


def test_an_exception_is_part_of_its_line() -> None:
    out = io.StringIO()
    configure_logs("info", "json", out)
    try:
        raise ValueError("odd")
    except ValueError:
        structlog.get_logger().exception("part_ended")
    assert json.loads(out.getvalue())["exception"][0]["exc_value"] == "odd"


def test_lines_below_the_level_are_left_out() -> None:
    out = io.StringIO()
    configure_logs("warning", "json", out)
    structlog.get_logger().info("feed_fetched")
    assert out.getvalue() == ""


def test_the_servers_chatter_is_left_out_but_not_its_warnings() -> None:
    out = io.StringIO()
    configure_logs("info", "json", out)
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("odd request")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == [
        "odd request"
    ]


def test_the_console_gets_plain_text_when_it_is_no_terminal() -> None:
    out = io.StringIO()
    configure_logs("info", "console", out)
    structlog.get_logger().info("feed_fetched", feed=7)
    assert "feed_fetched" in out.getvalue()
    assert "feed=7" in out.getvalue()
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_traceback_shows_no_values_of_variables(format: str) -> None:
    out = io.StringIO()
    configure_logs("info", format, out)
    key = "-".join(("a", "secret", "value"))  # not written out in the source
    try:
        int(key.replace(key, "odd"))
    except ValueError:
        structlog.get_logger().exception("part_ended")
    assert "part_ended" in out.getvalue()
    assert key not in out.getvalue()


FORGED = "2026-01-01T00:00:00Z [info     ] token_created account=admin"
STEERING = ("\x1b[2J", "\x9b2J", "\r", "\x08", "\x0b", "\x85", "\u2028", "\u202e", "\0")


@pytest.mark.parametrize("format", ["json", "console"])
@pytest.mark.parametrize("odd", ["\n", "\r\n", *STEERING], ids=repr)
def test_nothing_that_is_logged_begins_a_line_or_steers_a_terminal(
    format: str, odd: str
) -> None:
    out = io.StringIO()
    configure_logs("info", format, out)
    text = f"a{odd}{FORGED}"
    structlog.get_logger().info("feed_fetched", feed=7, error=text)
    structlog.get_logger().info("feed_fetched", feeds=[text])
    logging.getLogger("somebody").warning(text)
    assert len(out.getvalue().splitlines()) == out.getvalue().count("\n") == 3
    assert out.getvalue().replace("\n", "").isprintable()


@pytest.mark.parametrize("odd", ["\n", *STEERING], ids=repr)
def test_no_line_of_a_traceback_looks_like_one_of_the_log(odd: str) -> None:
    out = io.StringIO()
    configure_logs("info", "console", out)
    try:
        raise ValueError(f"a{odd}{FORGED}")
    except ValueError:
        structlog.get_logger().exception("part_ended")
    first, *traceback = out.getvalue().splitlines()
    assert "part_ended" in first
    assert len(traceback) >= 3
    assert all(line.startswith("    ") for line in traceback)
    assert out.getvalue().replace("\n", "").isprintable()
