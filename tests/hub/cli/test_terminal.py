"""Every verb: nothing others wrote steers a terminal, and programs get JSON."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hub.cli
from hub.cli import main, visible
from hub.web.api.openapi import openapi_document
from tests.support.admin import TOKEN
from tests.support.command_walk import verbs
from tests.support.fake_api import FakeApi, serving
from tests.support.live_hub import live_hub
from tests.support.terminal import run_in_terminal

C1, OVERRIDE, ESCAPE = "\x9b31m", "\u202e", "\x1b]0;title\x07"
EVIL = f"evil{C1}{OVERRIDE}{ESCAPE}\r"
IN_XML = EVIL.replace(ESCAPE, "")
"""What XML may have of it."""
TIME = "2026-11-21T10:30:00Z"
FEED = f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>u:f</id><title>{IN_XML}</title>
<updated>{TIME}</updated><entry><id>u:e</id><title>{IN_XML}</title>
<updated>{TIME}</updated><content>{IN_XML}</content></entry></feed>"""
OPML = f"""<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0"><body><outline type="rss" text="{IN_XML}"
 xmlUrl="https://example.org/{OVERRIDE}"/></body></opml>"""


ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "accounts list": ((), ("--json",)),
    "accounts show": (("alice",), ("alice", "--json")),
    "audit": ((), ("--json",)),
    "db backup": (("{folder}/backup.db",),),
    "db backups": ((), ("--json",)),
    "db check": ((), ("--json",)),
    "db compact": ((),),
    "db copy": (("sqlite:{folder}/feed.xml", "sqlite:{folder}/copy.db"),),
    "db restore": (("{folder}/feed.xml",),),
    "db migrate": ((),),
    "db status": ((),),
    "deliveries list": ((), ("--json",), ("--failed",), ("--failed", "--json")),
    "deliveries sent": ((), ("--json",)),
    "deliveries slowest": ((), ("--json",)),
    "deliveries show": (("1",), ("1", "--json")),
    "deliveries retry": (("--dead-letter", "1"), ("--status", "5xx", "--yes")),
    "deliveries discard": (("--dead-letter", "1"), ("--all", "--yes", "--json")),
    "events subscribe": (("https://you.example/",),),
    "events types": ((), ("--json",)),
    "feeds add": (("https://example.org/",), ("https://example.org/", "--private")),
    "feeds discover": (("https://example.org/",), ("https://example.org/", "--json")),
    "feeds edit": (("1", "--private"),),
    "feeds entries": (("1",), ("1", "--json")),
    "feeds explain": (("1",), ("1", "--json")),
    "feeds fetch": (("1",),),
    "feeds history": (("1",),),
    "feeds list": ((), ("--json",)),
    "feeds parse": (("1",), ("1", "--json")),
    "feeds pause": (("1",), ("--failing",), ("--failing", "--json")),
    "feeds remove": (("1",),),
    "feeds report": ((), ("--json",)),
    "feeds resume": (("1",),),
    "feeds show": (("1",), ("1", "--json")),
    "entries": ((), ("--json",)),
    "entry": (("1",), ("1", "--json")),
    "health": ((), ("--json",)),
    "hubs": ((), ("--json",)),
    "opml discover": (("https://example.org",),),
    "opml export": ((),),
    "opml import": (("{folder}/list.opml",), ("https://example.org/list",)),
    "opml unwatch": (("1",),),
    "opml watches": ((), ("--json",)),
    "parse": (
        ("{folder}/feed.xml",),
        ("{folder}/feed.xml", "--format", "atom"),
        ("{folder}/feed.xml", "--explain"),
        ("{folder}/feed.xml", "--explain", "--json"),
    ),
    "plans cancel": (("1",), ("1", "--json")),
    "plans confirm": (("1",), ("1", "--json")),
    "plans list": ((), ("--json",)),
    "outputs": ((), ("--json",)),
    "plans show": (("1",), ("1", "--json")),
    "playground answer": (("x", "--challenge", "slow"),),
    "playground list": ((), ("--json",)),
    "playground remove": (("x",),),
    "playground send": (("x", "--again", "1"), ("x", "--again", "1", "--messages")),
    "playground show": (("x",), ("x", "--messages"), ("x", "--json")),
    "playground start": ((), ("https://example.org/", "--json")),
    "playground step": (("x", "all", "--messages"),),
    "playground try": ((), ("https://example.org/", "--messages")),
    "scp build": ((), ("--json",)),
    "series": ((), ("--name", "polls"), ("--json",)),
    "settings": ((), ("--given", "--json")),
    "subs add": (("https://you.example/", "https://example.org/"),),
    "subs attempts": (("1",), ("1", "--failed")),
    "subs edit": (("1", "--batch"),),
    "subs import": (("{folder}/subs.json",), ("{folder}/subs.json", "--json")),
    "subs list": ((), ("--json",)),
    "subs pause": (("1",), ("https://a.example/", "--json")),
    "subs remove": (("1",),),
    "subs request": (("1",), ("1", "--json")),
    "subs replay": (("1", "--since", "2h"), ("1", "--record", "4", "--json")),
    "subs rotate-secret": (("1",), ("1", "--json")),
    "subs resume": (("1",), ("1", "--json")),
    "subs resubscribe": (("1",), ("1", "--json")),
    "subs retry": (("1",), ("1", "--json")),
    "subs show": (("1",), ("1", "--json")),
    "subs test": (("1",), ("--callback", "https://a.example/", "--topic", "x")),
    "connections disconnect": (("1",), ("1", "--json")),
    "connections list": ((), ("--json",)),
    "tokens create": (("--account", "me", "--scope", "list"),),
    "tokens list": ((), ("--json",)),
    "tokens revoke": (("1",),),
    "track search": (("evil",), ("evil", "--json")),
    "track test": (("evil", "--in", "{folder}/feed.xml"),),
    "account": ((), ("--json",)),
    "ui": ((), ("--json",)),
    "version": ((),),
}
"""For each verb, what it is called with; ``{folder}`` has hostile documents."""
ELSEWHERE = {"serve", "demo", "listen", "simulate", "tail"}
"""They go on, or need more than answers; the source says that they print alike."""


DOCUMENT: Any = openapi_document()


def value_of(schema: dict[str, Any], name: str = "") -> Any:
    """Of a member of an answer, as hostile as its schema allows."""
    if name in ("next", "cursor"):
        return None
    if name == "hours":
        return [1.0] * 168
    if "anyOf" in schema:
        return value_of(schema["anyOf"][0])
    if "$ref" in schema:
        found = schema["$ref"].rpartition("/")[2]
        return value_of(DOCUMENT["components"]["schemas"][found])
    if "enum" in schema:
        return next(each for each in schema["enum"] if each)
    if schema["type"] == "object":
        members = schema.get("properties", {}).items()
        return {member: value_of(it, member) for member, it in members}
    if schema["type"] == "array":
        return [value_of(schema["items"])]
    text = TIME if schema.get("format") == "date-time" else EVIL
    return {"string": text, "integer": 1, "number": 1.5}.get(schema["type"], True)


@dataclass
class HostileApi(FakeApi):
    """Every operation answers with hostile text in each of its strings."""

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path = target.partition("?")[0]
        if path == "/myPublicFeeds.opml":
            return 200, OPML.encode()
        for each, members in DOCUMENT["paths"].items():
            pattern = re.sub(r"{\w+}", "[^/]+", each)
            if method.lower() in members and re.fullmatch(pattern, path):
                status, answer = min(members[method.lower()]["responses"].items())
                (content,) = answer["content"].values()
                return int(status), json.dumps(value_of(content["schema"])).encode()
        return 500, json.dumps({"detail": EVIL}).encode()


@pytest.fixture(autouse=True)
def without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the only escape sequences there are."""
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "feed.xml").write_text(FEED)
    (tmp_path / "list.opml").write_text(OPML)
    dumped = {"topic": f"https://example.org/{OVERRIDE}", "callback": f"https://{C1}"}
    (tmp_path / "subs.json").write_text(json.dumps([dumped]))
    with serving(HostileApi()) as api:
        monkeypatch.setenv("FANFARE_PUBLIC_URL", api.url)
        monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "token")
        monkeypatch.setenv("FANFARE_DATABASE", f"sqlite:{tmp_path}/data/hub.db")
        yield tmp_path


def test_every_verb_is_in_the_table() -> None:
    there = {" ".join(words) for words, _ in verbs(main)}
    assert there == ARGUMENTS.keys() | ELSEWHERE


@pytest.mark.parametrize(
    ("verb", "given"),
    [(verb, given) for verb, all_of in ARGUMENTS.items() for given in all_of],
    ids=str,
)
def test_no_verb_lets_what_others_wrote_steer_the_terminal(
    folder: Path, verb: str, given: tuple[str, ...]
) -> None:
    arguments = (each.format(folder=folder) for each in given)
    code, shown = run_in_terminal(*verb.split(), *arguments)
    assert code in (0, 1, 3)
    assert shown
    assert visible(shown) == shown


AS_JSON = [
    (verb, given)
    for verb, all_of in ARGUMENTS.items()
    for given in all_of
    if "--json" not in given and "--format" not in given
]
WITHOUT_IDS = {
    *(
        "deliveries list",
        "deliveries retry",
        "deliveries discard",
        "deliveries slowest",
        "events types",
        "feeds discover",
        "health",
        "opml discover",
        "opml export",
        "series",
        "settings",
    ),
    *("scp build", "subs import", "track test", "version", "feeds report", "subs test"),
    "account",
    "outputs",
    "hubs",
    "accounts list",
    "accounts show",
    "subs replay",
    "subs request",
    "ui",
}
"""What these tell of has no id, or one by a longer name."""


def test_every_verb_has_an_option_for_programs() -> None:
    for words, command in verbs(main):
        assert "as_json" in {each.name for each in command.params}, words


@pytest.mark.parametrize(("verb", "given"), AS_JSON, ids=str)
def test_every_verb_answers_programs_with_json_and_ids(
    folder: Path, verb: str, given: tuple[str, ...]
) -> None:
    if verb.startswith("db "):
        return
    arguments = (each.format(folder=folder) for each in given)
    result = CliRunner().invoke(main, [*verb.split(), *arguments, "--json"])
    assert result.exit_code in (0, 1, 3)
    document = json.loads(result.stdout)
    if verb not in WITHOUT_IDS:
        assert '"id":' in result.stdout
    assert document or verb.startswith("deliveries")


@pytest.mark.parametrize("failing", ["feeds show", "opml discover"])
def test_nor_does_the_reason_of_a_failure(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = FakeApi()
    with serving(api):
        monkeypatch.setenv("FANFARE_PUBLIC_URL", api.url)
        monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "token")
        api.answers["GET /api/feeds/1"] = (500, {"detail": EVIL})
        api.answers["POST /api/lists"] = (500, {"detail": EVIL})
        code, shown = run_in_terminal(*failing.split(), "1")
    assert code == 1
    assert "evil" in shown
    assert visible(shown) == shown


@pytest.mark.parametrize("format", ["json", "atom"])
async def test_nor_what_comes_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    topic = "https://news.example/feed"
    async with live_hub(tmp_path) as live:
        await live.add_feed(topic)
        await live.publish(topic, "first")
        begin = await live.cursor(1)
        await live.publish(topic, "evil", text=IN_XML)
        await live.publish(topic, IN_XML)
        monkeypatch.setenv("FANFARE_PUBLIC_URL", f"http://127.0.0.1:{live.port}")
        monkeypatch.setenv("FANFARE_ADMIN_TOKEN", TOKEN)
        options = ("--format", format, "--count", "2", "--cursor", begin)
        code, shown = await asyncio.to_thread(run_in_terminal, "tail", topic, *options)
    assert code == 0
    assert "evil" in shown
    assert visible(shown) == shown


def test_what_is_no_terminal_gets_the_document_as_it_is(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit):
        main(["opml", "export"])
    assert capfdbinary.readouterr().out == OPML.encode()


def test_every_verb_prints_through_the_one_function() -> None:
    """So what a verb prints is made visible, also in those that are not run here."""
    sources = sorted(Path(hub.cli.__file__).parent.glob("*.py"))
    assert len(sources) > 20
    found = {
        f"{source.name}: {ast.unparse(node)}"
        for source in sources
        for node in ast.walk(ast.parse(source.read_text()))
        if _prints(node)
    }
    assert found == {
        "__init__.py: click.echo",
        "__init__.py: sys.stderr",
        "__init__.py: sys.stdout",
    }


def _prints(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "print"
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    named = f"{node.value.id}.{node.attr}"
    is_click = node.attr in {"echo", "secho", "echo_via_pager", "progressbar"}
    return named in {"sys.stdout", "sys.stderr"} or (
        node.value.id == "click" and is_click
    )
