"""Backups and checks of the database."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from hub.services.database_jobs import DatabaseJobs, JobKind
from hub.web.audited_requests import note_detail
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import ApiOperation, Parameter, Routes
from hub.web.request_input import RequestBody, query_number, read_body
from storage.records import TokenScope

LONGEST_WAIT = 50
"""The longest wait, in seconds: proxies and clients give up after a minute."""
_WAIT = Parameter(
    name="wait",
    help="seconds to wait for the end; 202 if it is still running",
    kind="integer",
    default=LONGEST_WAIT,
    least=0,
    largest=LONGEST_WAIT,
)


class Backup(RequestBody):
    """The body of ``POST /api/db/backup``: a new file on the hub's machine.

    Without a ``destination``, it is made in the directory of scheduled backups.
    """

    destination: str | None = None


class DatabaseJobJson(JsonObject):
    """A backup or a check.

    ``done`` of ``total`` bytes are copied; a check does not know either. It goes on
    until ``finished``. ``error``: why it failed. ``findings``: what a check found
    wrong.
    """

    kind: JobKind
    file: str
    started: Time
    finished: Time | None
    done: int
    total: int
    error: str
    findings: Sequence[str]


class BackupFileJson(JsonObject):
    """A backup in the directory; ``at``: when it was begun."""

    file: str
    at: Time
    bytes: int


class BackupScheduleJson(JsonObject):
    """Scheduled backups: one ``every`` so many seconds, and how many are ``kept``."""

    directory: str
    every: float
    kept: int


class DatabaseJobsJson(JsonObject):
    """What is done with the database now, and what was done last.

    ``backups``: the files there are, the newest first.
    """

    running: DatabaseJobJson | None
    last_backup: DatabaseJobJson | None
    last_check: DatabaseJobJson | None
    schedule: BackupScheduleJson | None
    backups: Sequence[BackupFileJson]


class DatabaseRoutes(Routes):
    tag = "database"

    def __init__(self, jobs: DatabaseJobs) -> None:
        self._jobs = jobs

    @ApiOperation(
        method="POST",
        path="/db/backup",
        id="back_up_database",
        scope=TokenScope.ADMIN,
        summary="Back up the database to a new file on the hub's machine",
        description='`{"destination": "/absolute/path"}`, or `{}` for one in'
        " `FANFARE_BACKUP_DIR`. 201 when it is made, 202 if that takes longer than"
        " `wait`: `GET /api/db/jobs` says how far it is, and what came of it. 409"
        " while another backup or check is running.",
        answers={201: DatabaseJobJson, 202: DatabaseJobJson},
        query=(_WAIT,),
        body=Backup(destination="/var/backups/fanfare.db"),
        problems=(409,),
    )
    async def backup(self, request: Request) -> Response:
        wait = query_number(request, "wait", LONGEST_WAIT, LONGEST_WAIT)
        body = await read_body(request, Backup)
        note_detail(request, f"to {body.destination}")
        self._jobs.start_backup(body.destination)
        return await self._answer(wait, HTTPStatus.CREATED)

    @ApiOperation(
        method="POST",
        path="/db/check",
        id="check_database",
        scope=TokenScope.ADMIN,
        summary="Check the whole database for damage",
        description="200 when it was read, with the damage as `findings`; 202 if that"
        " takes longer than `wait`. 409 while another backup or check is running.",
        answers={200: DatabaseJobJson, 202: DatabaseJobJson},
        query=(_WAIT,),
        problems=(409, 422),
    )
    async def check(self, request: Request) -> Response:
        wait = query_number(request, "wait", LONGEST_WAIT, LONGEST_WAIT)
        await self._jobs.start_check()
        return await self._answer(wait, HTTPStatus.OK)

    @ApiOperation(
        method="GET",
        path="/db/jobs",
        id="list_database_jobs",
        scope=TokenScope.ADMIN,
        summary="The running backup or check, and the last ones",
        description="The answer has the backup or check that is `running` (`done` of"
        " `total` bytes), `last_backup` and `last_check` of this process, the"
        " `schedule` of backups, and the `backups` in its directory, newest first.",
        answers={200: DatabaseJobsJson},
    )
    async def jobs(self, request: Request) -> Response:
        jobs, schedule = self._jobs, self._jobs.directory
        found = DatabaseJobsJson(
            running=DatabaseJobJson.of_any(jobs.running),
            last_backup=DatabaseJobJson.of_any(jobs.last(JobKind.BACKUP)),
            last_check=DatabaseJobJson.of_any(jobs.last(JobKind.CHECK)),
            schedule=None
            if schedule is None
            else BackupScheduleJson.of(schedule, directory=str(schedule.path)),
            backups=[BackupFileJson.of(each) for each in await jobs.backups()],
        )
        return json_response(found)

    async def _answer(self, wait: float, status: HTTPStatus) -> Response:
        job = await self._jobs.wait(wait)
        is_ended = job.finished is not None
        return json_response(
            DatabaseJobJson.of(job), status if is_ended else HTTPStatus.ACCEPTED
        )
