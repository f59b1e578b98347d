"""Backups of a hub, and lives that begin from one: what came after it never was."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.simulation.branches import Branch
from tests.simulation.disk import Disk
from tests.simulation.membership import Members, Membership
from tests.simulation.simulated_hub import SimulatedHub
from tests.support.oracle import Kill


@dataclass(frozen=True, slots=True)
class Backup:
    files: Mapping[str, bytes]
    taken_at: float
    branch: Branch  # until then
    members: Members
    read: Mapping[str, tuple[int, ...]]  # by listeners


class Backups:
    def __init__(
        self,
        simulated: SimulatedHub,
        membership: Membership,
        *,
        keeps_epoch: bool = False,
    ) -> None:
        """``keeps_epoch``: as if files were copied that do not say they are copies."""
        self.abandoned: list[Branch] = []
        self._simulated = simulated
        self._membership = membership
        self._keeps_epoch = keeps_epoch
        self._kept: list[Backup] = []

    async def make(self) -> None:
        """Beside the hub, while it serves."""
        simulated = self._simulated
        simulated.count("backups")
        path = simulated.directory / f"backup-{simulated.outcome.faults['backups']}.db"
        now = asyncio.get_running_loop().time()
        hub_url = f"{simulated.process.hub_url}/hub"
        cut = {hub_url: Kill(now, simulated.lag(now))}
        branch = simulated.branch.until(now)
        backup = Backup(
            files={},
            taken_at=now,
            branch=replace(branch, kills={**branch.kills, **cut}),
            members=self._membership.remember(),
            read={each.name: tuple(each.numbers) for each in simulated.listeners},
        )
        await simulated.process.storage.backup(path)
        self._kept.append(replace(backup, files=_files(path, self._keeps_epoch)))

    def is_any(self) -> bool:
        return bool(self._kept)

    def put_in_place(self, before: Disk, directory: Path, random: Random) -> Disk:
        """A disk with one of them, perhaps beside the WAL that was there before."""
        simulated = self._simulated
        simulated.count("backups put in place")
        backup = simulated.random.choice(self._kept)
        now = asyncio.get_running_loop().time()
        self.abandoned.append(simulated.branch.until(now))
        simulated.branch = backup.branch.again_from(now)
        self._membership.relive(backup.members)
        for listener in simulated.listeners:
            listener.lose(backup.read[listener.name])
        after = before.crash(directory, random)
        if random.random() < 0.5:
            (directory / "hub.db-wal").unlink(missing_ok=True)
        after.format(backup.files)
        return after


def _files(path: Path, keeps_epoch: bool) -> dict[str, bytes]:
    if keeps_epoch:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            copy.execute("UPDATE meta SET is_copy = 0")
    key = path.with_name(f"{path.name}.key")
    return {"hub.db": path.read_bytes(), "hub.db.key": key.read_bytes()}
