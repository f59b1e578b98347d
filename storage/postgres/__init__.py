"""The shared engine: a PostgreSQL database that several hubs may use.

It is not whole yet: `storage.database_url` opens none. Its driver comes with an extra,
so nothing of it is imported before a database is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import DatabaseUnusable

if TYPE_CHECKING:
    from storage.postgres.operations import PostgresStorage


async def open_database(
    url: str, key_file: Path, *, migrate: bool = True
) -> PostgresStorage:
    """Open ``postgresql://…``; the encryption key is made if need be.

    Close what is returned. Raises `DatabaseUnusable`: `DatabaseTooNew`, and, if not to
    ``migrate``, `DatabaseOutdated`.
    """
    try:
        from storage.postgres.opening import open_at
    except ImportError as error:
        if not str(error.name).startswith("psycopg") and "libpq" not in str(error):
            raise
        reason = (
            "its driver is missing; install it: pip install 'fanfare-hub[postgres]'"
        )
        raise DatabaseUnusable("a PostgreSQL database", reason) from error
    return await open_at(url, key_file, migrate=migrate)
