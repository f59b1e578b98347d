"""Whoever in the hub makes a request is known, and so is the door that tries it.

Made from the source: a module that begins to ask, or to open connections of its own,
fails here until it is in one of the tables, and what is there no longer does so too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.hardening.test_ssrf_doors import DOORS

ROOT = Path(__file__).parents[2]
REQUESTS = {"Request": "hub.http", "FetchRequest": "hub.ingest.fetcher"}
"""What is made by whoever asks, and where it is from."""
WISHES = {"Ask", "Download"}
"""What the pure readers of sites make, for `hub.sites.site_reader` to fetch."""

ASKING = {
    # callbacks
    "hub.delivery.webhook": {
        "a callback that redirects what is delivered",
        "a callback that redirects a replay and a denial",
    },
    "hub.delivery.denials": {"a callback that redirects a replay and a denial"},
    "hub.websub.callback_challenge": {
        "a callback of the open hub",
        "a callback that redirects its question",
        "a callback that is asked before the answer",
    },
    # whatever a developer writes
    "hub.services.playground": {
        "a topic of the playground",
        "a topic of the playground that redirects",
        "a hub of the playground",
        "a hub of the playground that redirects",
        "a callback of the playground",
    },
    "hub.websub.playground_network": {"test_all_steps_are_made_with_the_hub_itself"},
    # feeds and topics
    "hub.ingest.fetcher": {"a redirect of a feed"},
    "hub.ingest.fetch_pipeline": {"a feed that is added", "a topic that is pinged"},
    "hub.services.feed_documents": {"a document that is explained"},
    "hub.sites.feed_finder": {"a page that is looked at", "a feed that a page names"},
    "hub.ingest.polite_fetchers": {"test_a_site_s_robots_txt_leads_nowhere_forbidden"},
    "hub.websub.topic_admission": {"a topic of the open hub"},
    "hub.services.opml_lists": {"a list of feeds", "a list that another includes"},
    "hub.core.sites.": {
        "a site that a page names",
        "the endpoint of an openfeeder site",
        "a collection of an scp site",
    },
    # whoever else is named by a document, or by the operator
    "hub.push.push_subscriber": {
        "a hub that a feed names",
        "a hub that redirects a subscriber",
        "a cloud that a feed names",
    },
    "hub.websub.publisher_validation": {
        "a publisher who is asked who may subscribe",
        "a publisher that the operator names",
    },
    "hub.publishing.openfeeder_analytics": {
        "test_what_counts_readers_is_asked_by_the_guard_too"
    },
    "hub.cli.parsed_documents": {"test_a_url_is_fetched_under_the_address_guard"},
}
"""Who asks, and the doors of `test_ssrf_doors` (or tests) that try it."""

OPENING = {
    "hub.http.dialling": "the one way out, behind the guard",
    "hub.http.client": "takes the settings of TLS",
    "hub.http.client_connections": "tells what went wrong with TLS",
    "hub.http.resolver": "looks names up",
    "hub.web.server.http_server": "listens",
    "hub.main": "listens",
    "hub.runtime.service_manager": "tells the program that started the hub",
    "storage.copying.postgres_copies": "asks what this machine is called",
    "hub.cli.hub_client": "the operator's own program, to the hub that it is told",
    "hub.cli.live_client": "the same",
    "hub.client.fanfare_client.requested_calls": "runs in others' programs",
    "hub.client.fanfare_client.waiting_clients": "the same",
    "hub.demo.hub_requests": "to the hub that the demonstration has started",
    "hub.demo.demonstration": "listens, and asks the hub that it has started",
}
"""Who could open connections past `hub.http`, and why that is right."""
MEANS = {
    *("socket", "ssl", "http.client", "urllib.request", "ftplib", "smtplib", "poplib"),
    *("imaplib", "telnetlib", "xmlrpc.client", "asyncore", "socketserver"),
    *("aiohttp", "httpx", "httpx2", "requests", "urllib3", "pycurl"),
    *("websockets.client", "websockets.asyncio.client", "websockets.sync.client"),
}
OPENERS = {
    *("create_connection", "create_datagram_endpoint", "open_connection"),
    *("open_unix_connection", "create_unix_connection", "sock_connect"),
}


WORTH_READING = re.compile(
    rf"\b(?:{'|'.join({*REQUESTS, *WISHES, *OPENERS})})\b"
    rf"|\b(?:import|from)\s+(?:{'|'.join({each.split('.')[0] for each in MEANS})})\b"
)
"""Whoever asks or opens has one of these words; to parse all the rest takes long."""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (".".join(path.relative_to(ROOT).with_suffix("").parts), ast.parse(source))
        for package in ("hub", "storage", "protocols")
        for path in sorted((ROOT / package).rglob("*.py"))
        if WORTH_READING.search(source := path.read_text("utf-8"))
    )


@cache
def source_of_tests() -> str:
    return "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Modules, and what is taken of them; "" for a module as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", each.name) for each in node.names)


def called(tree: ast.Module) -> set[str]:
    """Functions and classes; also those that `maker` makes a function of."""
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    names = {each.func.id for each in calls if isinstance(each.func, ast.Name)}
    made = [one for each in calls if is_maker(each.func) for one in each.args]
    names |= {each.id for each in made if isinstance(each, ast.Name)}
    return names | {
        each.func.attr for each in calls if isinstance(each.func, ast.Attribute)
    }


def is_maker(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id.startswith("maker")


def asks(name: str, tree: ast.Module) -> bool:
    calls, taken = called(tree), set(imported(tree))
    makes_request = any(
        each in calls
        and any(what == each and where.startswith(source) for where, what in taken)
        for each, source in REQUESTS.items()
    )
    defines = {each.name for each in tree.body if isinstance(each, ast.ClassDef)}
    is_fetcher = "FetchRequest" in defines
    is_reader = name.startswith("hub.core.sites.") and not calls.isdisjoint(WISHES)
    return makes_request or is_fetcher or is_reader


def opens(tree: ast.Module) -> bool:
    """Whether it has the means, under whatever name it takes them."""
    for where, what in imported(tree):
        if where in MEANS or f"{where}.{what}" in MEANS:
            return True
    attributes = {
        each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)
    }
    return not OPENERS.isdisjoint(attributes | called(tree))


def entry(name: str) -> str:
    return "hub.core.sites." if name.startswith("hub.core.sites.") else name


def test_whoever_makes_a_request_is_tried_by_a_door() -> None:
    assert {entry(name) for name, tree in modules() if asks(name, tree)} == set(ASKING)


def test_nobody_else_has_the_means_to_open_a_connection() -> None:
    assert {name for name, tree in modules() if opens(tree)} == set(OPENING)


@pytest.mark.parametrize("name", ASKING)
def test_the_doors_that_are_named_are_there(name: str) -> None:
    for each in ASKING[name]:
        assert each in DOORS or f"def {each}(" in source_of_tests(), each


@pytest.mark.parametrize(
    "source",
    [
        "from hub.http import Request\nRequest()",
        "from hub.http.exchange import Request\ndef ask(): return Request(url='')",
        "from hub.ingest.fetcher import FetchRequest\nFetchRequest()",
    ],
)
def test_a_module_that_begins_to_ask_is_found(source: str) -> None:
    assert WORTH_READING.search(source)
    assert asks("hub.new", ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "from http import client",
        "from urllib.request import urlopen as get",
        "import asyncio\nasyncio.open_connection('x', 80)",
        "from asyncio import open_connection\nopen_connection('x', 80)",
        "dial = loop.create_connection",
        "def f():\n    import aiohttp",
        "from websockets.asyncio.client import connect",
    ],
)
def test_a_module_that_could_open_a_connection_is_found(source: str) -> None:
    assert WORTH_READING.search(source)
    assert opens(ast.parse(source))
