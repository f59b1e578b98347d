"""``fanfare db``: the database file, with or without a running hub."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from hub.cli import VerbGroup, say
from hub.cli.hub_client import find_hub, read_settings
from hub.cli.wording import Failure, HubUnreachable, print_facts
from hub.settings import Settings
from storage.contract import Storage
from storage.errors import DatabaseLocked, StorageError
from storage.records import DatabaseStatus

Result = TypeVar("Result")


@click.group(cls=VerbGroup, name="db")
def database() -> None:
    """The database: backup, migrate, status."""


@database.command()
@click.argument("destination", type=click.Path(path_type=Path))
def backup(destination: Path) -> None:
    """Copy the database to a new file, while the hub runs or not.

    To restore, stop the hub and put the copy, with its .key, in the database's place.
    """
    target = destination.absolute()
    if _exists(target):
        raise Failure(f"{target} exists already; name a new file")
    try:
        _copy(target)
    except DatabaseLocked as locked:
        _let_the_owner_copy(target, locked)
    say(f"backed up to {target}")


def _copy(target: Path) -> None:
    """Copy the database as it is: it is migrated only when it is next opened."""
    settings = _existing()
    from storage.database_url import copy_storage

    try:
        copy_storage(settings.database, target)
    except DatabaseLocked:
        raise
    except StorageError as error:
        raise Failure(str(error)) from error


def _exists(target: Path) -> bool:
    try:
        return target.exists()
    except OSError as error:
        raise Failure(f"{target} is no file name: {error.strerror}") from error


def _let_the_owner_copy(target: Path, locked: DatabaseLocked) -> None:
    """Have the hub that uses the database copy it. If no hub answers, whoever uses it
    may soon be done."""
    try:
        find_hub(None).post("/api/db/backup", {"destination": str(target)})
    except HubUnreachable as error:
        raise HubUnreachable(f"{locked}, but {error.message}") from error


@database.command()
def migrate() -> None:
    """Bring the schema up to this version; `serve` does so by itself."""
    try:
        found = _with_database(lambda storage: storage.status(), migrate=True)
    except DatabaseLocked as error:
        raise Failure(f"{error}; stop it first") from error
    say(f"{found.location} is at schema version {found.version}")


@database.command()
def status() -> None:
    """Show version, size and position, and whether a hub is using it."""
    try:
        found = _with_database(lambda storage: storage.status(), migrate=False)
    except DatabaseLocked:
        _print_running()
    else:
        _print_status(found)


def _print_status(found: DatabaseStatus) -> None:
    print_facts(
        [
            ("database", found.location),
            ("engine", found.engine),
            ("schema", f"{found.version} of {found.latest}"),
            ("epoch", found.epoch),
            ("head", found.head),
            ("bytes", found.size_bytes),
            ("in use", "no"),
        ]
    )


def _print_running() -> None:
    hub = find_hub(None)
    found = hub.get("/api/health")["database"]
    print_facts([*found.items(), ("in use", f"by the hub at {hub.url}")])


def _existing() -> Settings:
    settings = read_settings()
    if not settings.database_path.exists():
        raise Failure(f"there is no database {settings.database_path} yet")
    return settings


def _with_database(
    use: Callable[[Storage], Awaitable[Result]], *, migrate: bool
) -> Result:
    """Open the file of this environment, use it, close it."""
    settings = _existing()

    async def session() -> Result:
        from storage.database_url import open_storage

        storage = await open_storage(settings.database, migrate=migrate)
        try:
            return await use(storage)
        finally:
            await storage.close()

    try:
        return asyncio.run(session())
    except DatabaseLocked:
        raise
    except StorageError as error:
        raise Failure(str(error)) from error
