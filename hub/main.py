"""Running a hub: from its settings to its orderly end.

Everything that works in the background runs in one task group. If one part ends by
itself, all end: a hub is never half alive. Every connection is an open file, of which
by default few are allowed, so the limit is raised at the start.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

import hub
from hub.admin_token import TokenUnreadable, ensure_token, token_file
from hub.composition import BuiltHub, TracesUnavailable, build_hub
from hub.hub_address import (
    HubAddress,
    address_file,
    create_address,
    remove_address,
    write_address,
)
from hub.ingest.visit_slots import slow_slots
from hub.publishing.collection_store import CollectionStoreUnusable
from hub.runtime import garbage_collection
from hub.runtime.background import BackgroundTask
from hub.runtime.node_membership import MembershipLost, NodeMembership
from hub.runtime.offloading import take_short_turns
from hub.runtime.service_manager import (
    InheritedSocketUnusable,
    ServiceManager,
    inherited_listener,
)
from hub.settings import Settings, unknown_variables
from hub.web.admin.page_streams import MOST_WATCHING
from hub.web.server.http_server import (
    DRAIN_SECONDS,
    AddressUnavailable,
    HttpServer,
    listening_socket,
)
from storage.database_url import open_storage
from storage.errors import StorageError
from storage.records import NewNode

STOP_SECONDS: Final = 4.7
"""Seconds after which the process ends, whatever is under way: `docker stop` kills
after ten seconds, other managers after five. Committed data is safe in any case."""
DRAINED_BESIDE: Final = ("dispatcher", "poller")
"""Parts that end at the same time as the server: the dispatcher has requests under way
itself, and HTTP requests wait for visits of the poller."""
LEAST_DRAIN: Final = 0.5

Announce = Callable[[str], None]
"""Tells the person who started the hub; it does not write to the log."""

_UNUSABLE = (
    AddressUnavailable,
    InheritedSocketUnusable,
    StorageError,
    TokenUnreadable,
    CollectionStoreUnusable,
    TracesUnavailable,
)

log = structlog.get_logger()


class CannotStart(Exception):
    """The hub did not start; the message says what to change."""


class HubFailed(Exception):
    """A part of the running hub ended by itself, and so the hub ended."""

    def __init__(self, part: str, reason: str) -> None:
        self.part = part
        self.reason = reason
        super().__init__(f"the {part} ended unexpectedly: {reason}")


async def run(
    settings: Settings,
    announce: Announce,
    command: str = "fanfare",
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Run a hub until SIGTERM or SIGINT, then let work under way finish.

    ``command`` is how this program can be called; ``on_stop`` is called at the signal,
    before anything ends (see `end_in_time`). A service manager is told of start, end
    and status; a socket that it hands over is listened at instead of
    ``settings.host`` and ``settings.port``. Raises `CannotStart`, with nothing left
    behind, and `HubFailed`.
    """
    manager = ServiceManager.of_environment(os.environ, os.getpid())
    stop = stop_signal(partial(_tell_end, manager, on_stop))
    async with AsyncExitStack() as stack:
        try:
            listener = stack.enter_context(
                inherited_listener(os.environ, os.getpid())
                or listening_socket(settings.host, settings.port)
            )
            settings = fit_connections(settings, raise_limit())
            storage = await open_storage(settings.database, settings.local_path)
            stack.push_async_callback(storage.close)
            membership = NodeMembership(storage, _node(settings))
            await membership.join()
            stack.push_async_callback(membership.leave)
            token = _admin_token(settings)
            host, port = listener.getsockname()[:2]
            public_url = settings.public_url or f"http://localhost:{port}"
            address = create_address(host, port, public_url)
            built = await build_hub(
                settings,
                storage,
                token,
                public_url,
                stack,
                identity_key=address.key,
                membership=membership,
            )
        except _UNUSABLE as error:
            raise CannotStart(str(error)) from error
        garbage_collection.freeze_startup()
        take_short_turns()
        _warn_about(settings)
        stack.enter_context(_found_by_commands(settings, address))
        announce(_greeting(settings, public_url, command))
        log.info("hub_started", url=public_url, version=hub.__version__)
        built.background["sweep"] = garbage_collection.collect_periodically
        manager.tell("READY=1")
        if manager.address:
            describe = built.services.conditions.describe
            built.background["service manager"] = partial(
                manager.keep_informed, describe
            )
        await run_until_stopped(built, listener, stop)
    log.info("hub_stopped")


def _node(settings: Settings) -> NewNode:
    """The node of this hub. Its name is the same after a restart, and differs on
    another machine or with other files."""
    return NewNode(
        name=f"{socket.gethostname()}:{settings.local_path.absolute()}",
        url=settings.public_url,
        is_alone=True,
    )


def _tell_end(manager: ServiceManager, on_stop: Callable[[], None]) -> None:
    manager.tell("STOPPING=1", "STATUS=shutting down")
    on_stop()


def _admin_token(settings: Settings) -> str:
    return settings.admin_token or ensure_token(token_file(settings.local_path))


@contextmanager
def _found_by_commands(settings: Settings, address: HubAddress) -> Iterator[None]:
    """Within the block commands find the hub by the file beside its database."""
    path = address_file(settings.local_path)
    try:
        write_address(path, address)
    except OSError as error:
        log.warning(
            "address_not_written",
            file=str(path),
            error=str(error),
            hint="commands cannot find this hub by themselves; name it with --url",
        )
    try:
        yield
    finally:
        with suppress(OSError):
            remove_address(path, address)


async def run_until_stopped(
    built: BuiltHub, listener: socket.socket, stop: asyncio.Event
) -> None:
    """Run all parts until ``stop`` is set; what is under way may finish.

    Raises `HubFailed` as soon as one of them ends by itself.
    """
    try:
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(_never_ending(name, start), name=name)
                for name, start in built.background.items()
            ]
            serving = group.create_task(
                _serve(built.server, listener, stop), name="server"
            )
            await stop.wait()
            log.info("hub_stopping")
            built.services.conditions.stop()
            loop = asyncio.get_running_loop()
            serves_until = loop.time() + DRAIN_SECONDS
            draining = [it for it in running if it.get_name() in DRAINED_BESIDE]
            for task in draining:
                task.cancel()
            built.pages.close()
            await built.live.drain()
            built.server.stop(max(LEAST_DRAIN, serves_until - loop.time()))
            await serving
            # A second cancellation would cut short what a draining task has under way,
            # and lose its acknowledgements.
            for task in set(running).difference(draining):
                task.cancel()
    except ExceptionGroup as failures:
        # The first part that ended is the cause; the others were then cancelled.
        raise failures.exceptions[0] from None


async def _never_ending(part: str, start: BackgroundTask) -> None:
    """Run a background task; if it ends, for whatever reason, the hub ends."""
    try:
        await start()
    except MembershipLost as error:
        log.error("database_lost", reason=str(error))
        raise HubFailed(part, str(error)) from error
    except Exception as error:
        log.exception("part_failed", part=part)
        raise HubFailed(part, f"{type(error).__name__}: {error}") from error
    raise HubFailed(part, "it returned")


async def _serve(
    server: HttpServer, listener: socket.socket, stop: asyncio.Event
) -> None:
    await server.serve(sockets=[listener])
    if not stop.is_set():
        raise HubFailed("server", "it returned")


def end_in_time(seconds: float = STOP_SECONDS) -> None:
    """Make the process end after ``seconds``, whatever hangs: a thread that waits for a
    disk or a name server, or work that cannot be cancelled."""
    timer = threading.Timer(seconds, _end_at_once)
    timer.daemon = True
    timer.start()


def _end_at_once() -> None:
    log.warning(
        "stopped_at_once",
        hint="some work did not end in time; what was committed is safe",
    )
    os._exit(0)


def stop_signal(on_stop: Callable[[], None] = lambda: None) -> asyncio.Event:
    """An event that is set when the process is asked to end."""
    stop = asyncio.Event()

    def tell() -> None:
        if not stop.is_set():
            on_stop()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell)
    return stop


def _warn_about(settings: Settings) -> None:
    """Warn of settings that are probably mistakes, but no reason not to start."""
    for name, likely in unknown_variables(os.environ):
        log.warning("setting_unknown", name=name, did_you_mean=likely)
    if not settings.contact:
        log.warning(
            "contact_missing",
            hint="set FANFARE_CONTACT, so that publishers know whom to write to",
        )
    if settings.scp == "on" and settings.public_url.startswith("http://"):
        log.warning(
            "scp_insecure",
            hint="set FANFARE_PUBLIC_URL to an https address: crawlers are to be given"
            " sitemap and collections over TLS only",
        )


def _greeting(settings: Settings, public_url: str, command: str) -> str:
    token = "as set"  # noqa: S105 - a description
    if not settings.admin_token:
        token = str(token_file(settings.local_path.absolute()))
    return (
        f"Fanfare {hub.__version__} is running at {public_url}\n"
        f"  database     {settings.database_name}\n"
        f"  admin token  {token}\n"
        "Next, in another terminal:\n"
        f"  {command} feeds add URL      poll a feed\n"
        f"  {command} listen URL         print its new entries as they come"
    )


MOST_FILES = 2**20
"""Open files to ask for if there is no limit; by default Linux allows no more."""
RESERVED = 256 + MOST_WATCHING
"""Open files for the database, the parser, requests other than live streams, and open
pages."""


def raise_limit() -> int:
    """Let this process open as many files as the system allows; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # some systems allow less than they say
        return soft
    return wanted


def fit_connections(settings: Settings, files: int) -> Settings:
    """Limit live connections to the number that is possible.

    A connection that the system does not accept blocks all others. One that is accepted
    and then found to be too many is told to come back.
    """
    polls = settings.poll_concurrency + slow_slots(settings.poll_concurrency)
    used = RESERVED + polls + settings.delivery_concurrency
    room = max(files - used, files // 4)
    wanted = settings.stream_connections
    if wanted > room:
        log.warning(
            "stream_connections_limited",
            wanted=wanted,
            connections=room,
            open_files=files,
            hint="raise the hard limit of open files (ulimit -Hn, LimitNOFILE)",
        )
    fitted = replace(settings, stream_connections=min(wanted, room))
    log.info(
        "open_files_allowed", files=files, live_connections=fitted.stream_connections
    )
    return fitted
