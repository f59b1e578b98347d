"""``fanfare db``: the database file, with or without a running hub."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from hub.admin_token import FILE_NAME
from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Document, Hub, find_hub, read_settings
from hub.cli.progress import CopyProgress, waiting
from hub.cli.wording import (
    Failure,
    HubUnreachable,
    json_option,
    moment,
    print_facts,
    print_table,
    say_json,
)
from hub.core.byte_sizes import byte_size
from hub.core.durations import duration
from hub.runtime.clock import SystemClock
from hub.settings import Settings
from storage.contract import Storage
from storage.database_names import is_on_server
from storage.errors import CopyDiffers, DatabaseLocked, DatabaseUnusable, StorageError
from storage.records import DatabaseStatus

if TYPE_CHECKING:
    from storage.copying import CopyOutcome

Result = TypeVar("Result")

ASK_SECONDS: Final = 0.5
"""Pause between two questions to the hub about a running job."""
PATIENCE: Final = 20
"""So many questions may go unanswered before the command gives up."""


@click.group(cls=VerbGroup, name="db")
def database() -> None:
    """Back up, restore, copy, check, compact and migrate the database."""


@database.command(
    epilog=examples("fanfare db backup /backups/fanfare.db", "fanfare db backup")
)
@click.argument("destination", type=click.Path(path_type=Path), required=False)
@json_option()
def backup(destination: Path | None, as_json: bool) -> None:
    """Copy the database and its key to a new file, with or without a running hub.

    Without DESTINATION the running hub writes to its FANFARE_BACKUP_DIR. `fanfare db
    restore` goes back to a backup.
    """
    target = None if destination is None else destination.absolute()
    if target is not None and _exists(target):
        raise Failure(f"{target} exists already; name a new file")
    try:
        made = _copy(target)
    except DatabaseLocked as locked:
        made = _let_the_owner_copy(target, locked)
    if as_json:
        say_json(made)
    else:
        say(f"backed up to {made['file']} ({byte_size(made['bytes'])})")


def _copy(target: Path | None) -> Document:
    """Copy the database file; the copy is migrated only when it is next opened.

    Raises `DatabaseLocked` if a hub uses the file, and `click.UsageError` if none does
    and ``target`` is None: only a hub chooses a file.
    """
    settings = _existing_file("back it up with pg_basebackup and archived WAL")
    from storage.database_url import check_unused, copy_storage

    if target is None:
        _at_rest(lambda: check_unused(settings.database))
        raise click.UsageError("no hub is running: name the file to back up to")
    _at_rest(lambda: copy_storage(settings.database, target, CopyProgress()))
    return {"file": str(target), "bytes": target.stat().st_size}


def _exists(target: Path) -> bool:
    try:
        return target.exists()
    except OSError as error:
        raise Failure(f"{target} is not a valid file name: {error.strerror}") from error


def _let_the_owner_copy(target: Path | None, locked: DatabaseLocked) -> Document:
    """Have the hub that uses the database copy it.

    Raises `HubUnreachable` if another program than a hub uses it.
    """
    body = {} if target is None else {"destination": str(target)}
    job = _let_the_owner("backup", body, locked)
    return {"file": job["file"], "bytes": job["total"]}


def _let_the_owner(
    kind: str, body: Document | None, locked: DatabaseLocked
) -> Document:
    """Have the hub that uses the database do a job; return the job when it has ended.

    ``kind`` is the job's part of the path ``/api/db/KIND``. Raises `Failure` if the job
    failed, and `HubUnreachable` if no hub answers.
    """
    try:
        hub = find_hub(None)
        job = hub.post(f"/api/db/{kind}?wait=1", body)
    except HubUnreachable as error:
        raise HubUnreachable(f"{locked}, but {error.message}") from error
    progress = CopyProgress()
    while job["finished"] is None:
        progress(job["done"], job["total"])
        time.sleep(ASK_SECONDS)
        job = _look_again(hub, kind, job)
    progress(job["total"], job["total"])
    if job["error"]:
        raise Failure(job["error"])
    return job


def _look_again(hub: Hub, kind: str, job: Document) -> Document:
    """Return the job as it is now. Raises `HubUnreachable` if it was interrupted.

    A job that the hub does not know any more, or whose hub is gone, was interrupted. A
    backup is not if its file exists: the file appears only when it is whole.
    """
    reason = "the hub was restarted meanwhile"
    try:
        found = _patiently(lambda: hub.get("/api/db/jobs"))
    except HubUnreachable as error:
        reason = error.message
    else:
        for each in (found["running"], found[f"last_{kind}"]):
            if each and each["file"] == job["file"]:
                return {**each, "total": each["total"] or job["total"]}
    if kind == "backup" and _exists(Path(job["file"])):
        return {**job, "finished": True}
    raise HubUnreachable(f"the {kind} was interrupted: {reason}")


def _patiently(ask: Callable[[], Document]) -> Document:
    """Ask, and ask again while the hub does not answer: it may still be at work."""
    for _ in range(PATIENCE):
        try:
            return ask()
        except HubUnreachable:
            time.sleep(ASK_SECONDS)
    return ask()


@database.command()
@click.argument("backup", type=click.Path(path_type=Path))
@json_option()
def restore(backup: Path, as_json: bool) -> None:
    """Replace the database by a backup and its .key while no hub is running.

    The backup is copied and checked first. The former database is kept beside the new
    one.
    """
    settings = read_settings()
    _require_file(settings, "restore it with the tools of the server")
    from storage.database_url import restore_storage

    stamp = f"{SystemClock().now():%Y%m%dT%H%M%SZ}"
    former = _stopped(
        lambda: restore_storage(
            settings.database, backup.absolute(), stamp, CopyProgress()
        )
    )
    if as_json:
        facts = {"file": settings.database_name, "former": former and str(former)}
        say_json(facts)
        return
    say(f"restored {backup} to {settings.database_name}")
    if former is not None:
        say(
            f"the former database is {former}, with its key;"
            " delete it when you are sure"
        )


@database.command()
@click.argument("backup", type=click.Path(path_type=Path), required=False)
@json_option()
def check(backup: Path | None, as_json: bool) -> None:
    """Read the whole database, or a backup, and report damage.

    Exit code 1 if anything is damaged. Works while the hub is running.
    """
    name = backup or _existing().database_name
    with waiting(f"reading {name}"):
        findings = _findings(backup)
    if as_json:
        say_json({"file": str(name), "findings": [*findings]})
    elif not findings:
        say(f"{name} is intact")
    if findings:
        raise Failure("\n".join([f"{name} is damaged:", *findings]))


def _findings(backup: Path | None) -> Sequence[str]:
    """Return what is damaged in a backup, or in the database if ``backup`` is None."""
    from storage.database_url import check_backup, check_storage

    if backup is not None:
        return _at_rest(lambda: check_backup(backup.absolute()))
    settings = _existing()
    try:
        if settings.is_on_server:
            return _with_database(lambda storage: storage.find_damage(), migrate=False)
        return _at_rest(lambda: check_storage(settings.database))
    except DatabaseLocked as locked:
        found: Sequence[str] = _let_the_owner("check", None, locked)["findings"]
        return found


@database.command()
@json_option()
def compact(as_json: bool) -> None:
    """Rewrite the database without its free pages while no hub is running.

    A running hub returns free pages by itself. This is for a database made by an older
    version, or if you need the disk space at once.
    """
    settings = _existing_file("autovacuum keeps free pages for what comes next")
    from storage.database_url import compact_storage

    before, after = _stopped(lambda: compact_storage(settings.database, CopyProgress()))
    if as_json:
        say_json({"bytes_before": before, "bytes_after": after})
    else:
        say(f"{settings.database_name}: {byte_size(before)}, now {byte_size(after)}")


@database.command()
@json_option()
def backups(as_json: bool) -> None:
    """List the scheduled backups of the hub, and whether the last one failed."""
    _require_file(read_settings(), "back it up with pg_basebackup and archived WAL")
    found = find_hub(None).get("/api/db/jobs")
    if as_json:
        say_json(found)
        return
    schedule = found["schedule"]
    if schedule is None:
        say("no backups are scheduled; set FANFARE_BACKUP_DIR")
        return
    say(
        f"a backup every {duration(schedule['every'])} in {schedule['directory']};"
        f" the newest {schedule['kept']} are kept"
    )
    last = found["last_backup"]
    if last and last["error"]:
        say(f"the last backup failed: {last['error']}", err=True)
    print_table(
        ("MADE", "BYTES", "FILE"),
        [
            (moment(each["at"]), byte_size(each["bytes"]), each["file"])
            for each in found["backups"]
        ],
    )


@database.command(
    epilog=examples(
        "fanfare db copy data/fanfare.db postgresql://fanfare@db.example/fanfare",
        "fanfare db copy postgresql://fanfare@db.example/fanfare /srv/fanfare.db",
    )
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--restart",
    is_flag=True,
    help="Throw away what an unfinished copy has, and begin anew.",
)
@json_option()
def copy(source: str, target: str, restart: bool, as_json: bool) -> None:
    """Copy the database to another engine, or server, while no hub is running.

    FROM and TO are each a file, or postgresql://USER@HOST/DATABASE. All is the same in
    the copy: ids, secrets, the log with its epoch, what is not delivered yet. It is
    compared row by row before a hub can use it. If it is broken off, run the same
    command again: it goes on.
    """
    settings = read_settings()
    from storage.copying import copy_content

    former, now = (
        replace(settings, database=_location(each)) for each in (source, target)
    )
    begun = time.monotonic()
    made = _going_on(
        lambda: copy_content(
            former.database,
            now.database,
            settings.state_path,
            _StagedProgress().tell,
            restart=restart,
        )
    )
    if as_json:
        say_json(_facts_of_copy(made, former, now))
        return
    seconds = round(time.monotonic() - begun)
    say(
        f"copied {former.database_name} to {now.database_name}: {made.rows:,} rows of"
        f" {made.tables} tables in {duration(seconds)}, compared row by row"
    )
    for line in _what_follows(former, now):
        say(line)


def _location(given: str) -> str:
    """As FANFARE_DATABASE has it."""
    if is_on_server(given) or given.startswith("sqlite:"):
        return given
    if "://" in given:
        raise click.UsageError("expected a file, or postgresql://USER@HOST/DATABASE")
    return f"sqlite:{given}"


class _StagedProgress:
    """A line for each stage of a copy, and how far that is."""

    def __init__(self) -> None:
        self._stage = ""
        self._progress = CopyProgress()

    def tell(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            say(stage, err=True)
            self._progress = CopyProgress(what="rows", amount="{:,}".format)
        self._progress(done, total)


def _going_on(work: Callable[[], Result]) -> Result:
    """Do it, or say why not, and whether it goes on when it is done again."""
    try:
        return _stopped(work)
    except Failure as failure:
        if isinstance(failure.__cause__, DatabaseUnusable | CopyDiffers):
            raise
        raise Failure(
            f"{failure.message}. The copy is not complete; run the same command again,"
            " and it goes on"
        ) from failure


def _facts_of_copy(made: CopyOutcome, former: Settings, now: Settings) -> Document:
    from storage.secrets import key_path

    return {
        "from": former.database_name,
        "to": now.database_name,
        "rows": made.rows,
        "tables": made.tables,
        "key": str(key_path(now.local_path)),
        "keeps_epoch": not made.is_copy,
    }


def _what_follows(former: Settings, now: Settings) -> Iterator[str]:
    """What is no part of the database, and that only one of both is to be used."""
    from hub.publishing.collection_store import COLLECTIONS_FOLDER
    from storage.secrets import key_path

    yield f"its key is {key_path(now.local_path)}; keep a copy of that file"
    others = {"the admin token": FILE_NAME, "collections": COLLECTIONS_FOLDER}
    for what, name in others.items():
        old, new = (each.local_path.with_name(name) for each in (former, now))
        if old.exists() and not new.exists():
            yield f"to keep {what}, copy {old} to {new}"
    yield (
        f"start the hub with FANFARE_DATABASE naming {now.database_name}, and none with"
        f" {former.database_name} any more: both would go on with the same log"
    )


@database.command()
@json_option()
def migrate(as_json: bool) -> None:
    """Bring the schema up to date; `serve` does so when it starts.

    With a million subscriptions that may take a minute, in which the hub does not
    answer. On PostgreSQL hubs of the former version may go on meanwhile: run this again
    once they have ended, to remove what only they use.
    """
    settings = _existing()
    from storage.database_url import migrate_storage

    found = _stopped(
        lambda: asyncio.run(migrate_storage(settings.database, settings.local_path))
    )
    if as_json:
        say_json(
            {
                "file": found.location,
                "schema": found.version,
                "latest": found.latest,
            }
        )
    else:
        say(describe_migration(found))


def describe_migration(found: DatabaseStatus) -> str:
    """What a migration came to, and whether something is left to do."""
    reached = f"{found.location} is at schema version {found.version}"
    if found.version == found.latest:
        return reached
    return (
        f"{reached}, which this version can use. Hubs of a former version still run,"
        f" and need what {found.latest} removes: run this again once they have ended"
    )


@database.command()
@json_option()
def status(as_json: bool) -> None:
    """Show schema version, size, end of the log, and whether a hub is using it."""
    try:
        at_rest = _with_database(lambda storage: storage.status(), migrate=False)
        found, user = _facts(at_rest), ""
    except DatabaseLocked:
        hub = find_hub(None)
        found, user = hub.get("/api/health")["database"], hub.url
    if as_json:
        say_json({**found, "used_by": user or None})
    else:
        print_facts(
            [*found.items(), ("in use", f"by the hub at {user}" if user else "no")]
        )


def _facts(found: DatabaseStatus) -> Document:
    """Return the status of the database, as the API of a hub would give it."""
    return {
        "engine": found.engine,
        "location": found.location,
        "schema": found.version,
        "epoch": found.epoch,
        "head": found.log_end,
        "size_bytes": found.size_bytes,
        "wal_bytes": found.wal_bytes,
    }


def _existing() -> Settings:
    settings = read_settings()
    if not (settings.is_on_server or settings.local_path.exists()):
        raise Failure(f"no database at {settings.local_path} yet")
    return settings


def _existing_file(instead: str) -> Settings:
    settings = _existing()
    _require_file(settings, instead)
    return settings


def _require_file(settings: Settings, instead: str) -> None:
    """Raise `Failure` for a database on a server; ``instead`` says what to do there."""
    if settings.is_on_server:
        raise Failure(
            f"{settings.database_name} is a database of PostgreSQL: {instead}; see"
            " docs/how-to/postgresql.md"
        )


def _with_database(
    use: Callable[[Storage], Awaitable[Result]], *, migrate: bool
) -> Result:
    """Open this environment's database, use it, and close it."""
    settings = _existing()

    async def session() -> Result:
        from storage.database_url import open_storage

        storage = await open_storage(
            settings.database, settings.local_path, migrate=migrate
        )
        try:
            return await use(storage)
        finally:
            await storage.close()

    return _at_rest(lambda: asyncio.run(session()))


def _at_rest(work: Callable[[], Result]) -> Result:
    """Return what ``work`` returns; its `StorageError` becomes a `Failure`.

    Raises `DatabaseLocked` if a hub uses the file.
    """
    try:
        return work()
    except DatabaseLocked:
        raise
    except StorageError as error:
        raise Failure(str(error)) from error


def _stopped(work: Callable[[], Result]) -> Result:
    """Like `_at_rest`, but a `Failure` too if a hub uses the file."""
    try:
        return _at_rest(work)
    except DatabaseLocked as error:
        raise Failure(f"{error}; stop it first") from error
