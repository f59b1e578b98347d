"""PgBouncer in front of the tests' server, in transaction mode, with TLS for clients
that ask for it.

It has two connections to the server, whatever its clients have. It is a program of the
machine: tests that need it are skipped where it is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.certificates import server_context
from tests.support.hub_process import free_port
from tests.support.postgres_server import PostgresServer

PROGRAM: Final = shutil.which("pgbouncer", path=f"{os.defpath}:/usr/sbin:/sbin")
STARTING: Final = 10.0

needs_pgbouncer = pytest.mark.skipif(
    PROGRAM is None, reason="PgBouncer is not installed (Debian: apt install pgbouncer)"
)


@contextmanager
def pgbouncer(server: PostgresServer, database: str) -> Iterator[tuple[str, Path]]:
    """Run it for the block: the location of the database behind it, without
    parameters, and the certificate of its only authority."""
    assert PROGRAM is not None
    with TemporaryDirectory(prefix="fanfare-pgbouncer-") as name:
        directory, port = Path(name), free_port()
        server_context(directory)
        certificate = directory / "loopback.pem"
        file = directory / "pgbouncer.ini"
        file.write_text(_configuration(server, certificate, port))
        for path, mode in ((directory, 0o755), (certificate, 0o644), (file, 0o644)):
            path.chmod(mode)  # it refuses to run as root
        running = subprocess.Popen([*_prefix(), PROGRAM, "-q", str(file)])
        try:
            location = f"postgresql://anybody@127.0.0.1:{port}/{database}"
            _wait_until_ready(running, location)
            yield location, certificate
        finally:
            running.kill()
            running.wait()


def _prefix() -> Sequence[str]:
    """What makes it end with this process, and not run as root."""
    user = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
    return ("setpriv", "--pdeathsig=SIGKILL", *(user if os.geteuid() == 0 else ()))


def _configuration(server: PostgresServer, certificate: Path, port: int) -> str:
    found = conninfo_to_dict(server.url)
    reached = {key: str(value) for key, value in found.items() if key != "dbname"}
    return f"""
[databases]
* = {make_conninfo("", **reached)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
client_tls_sslmode = allow
client_tls_key_file = {certificate}
client_tls_cert_file = {certificate}
"""


def _wait_until_ready(running: subprocess.Popen[bytes], location: str) -> None:
    for _ in range(int(STARTING / 0.02)):
        try:
            psycopg.connect(location).close()
        except psycopg.OperationalError:
            try:
                running.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError("PgBouncer ended by itself") from None
        return
    raise RuntimeError("PgBouncer was not ready in time")
