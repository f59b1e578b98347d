"""The shared engine: a PostgreSQL database, at which one hub works at a time.

Its driver comes with an extra, so nothing of it is imported before a database is
opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from storage.database_names import name_location
from storage.errors import DatabaseUnusable

if TYPE_CHECKING:
    from storage.postgres.operations import PostgresStorage


async def open_database(
    url: str,
    key_file: Path,
    *,
    migrate: bool = True,
    on_close: Callable[[], None] = lambda: None,
) -> PostgresStorage:
    """Open ``postgresql://…``; the encryption key is created if need be.

    The caller closes the result; then ``on_close`` is called. Raises
    `DatabaseUnusable`: `DatabaseTooNew`, and, if not to ``migrate``,
    `DatabaseOutdated`.
    """
    with requiring_driver(url):
        from storage.postgres.opening import open_at
    return await open_at(url, key_file, migrate=migrate, on_close=on_close)


@contextmanager
def requiring_driver(url: str) -> Iterator[None]:
    """For imports of it. Raises `DatabaseUnusable` if it is not installed."""
    try:
        yield
    except ImportError as error:
        if not str(error.name).startswith("psycopg") and "libpq" not in str(error):
            raise
        reason = (
            "its driver is missing; install it: pip install 'fanfare-hub[postgres]'"
        )
        raise DatabaseUnusable(name_location(url), reason) from error
