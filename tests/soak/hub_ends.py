"""Hubs that are killed over and over; the oracle outside says what was lost.

``kills``: one hub, killed at chosen points and at random moments; on PostgreSQL its
server fails as well, by an immediate stop. ``takeovers``: two hubs at one database on
PostgreSQL, of which one works; in turn it is killed, or stopped as a machine that hangs
and continued after the other has taken over.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.crash_campaign import Campaign
from tests.support.hub_process import LOOPBACK
from tests.support.postgres_server import DurableServer, durable_server
from tests.support.takeover_campaign import TakeoverCampaign


def kill(arguments: list[str] | None = None) -> int:
    parser = _parser("kills")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--kills", type=int, default=100)
    asked = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="fanfare-kills-") as name:
        directory = Path(name)
        if asked.engine == "sqlite":
            campaign = Campaign(asked.seed, kills=asked.kills, directory=directory)
            outcome = asyncio.run(campaign.run())
        else:
            with _database(directory) as (settings, server):
                campaign = Campaign(
                    asked.seed,
                    kills=asked.kills,
                    directory=directory,
                    settings=settings,
                    fail_server=server.restart,
                )
                outcome = asyncio.run(campaign.run())
    print(
        f"{len(outcome.kills)} kills, {outcome.failpoints_reached.total()} of them at"
        f" failpoints; {outcome.server_failures} failures of the server;"
        f" {outcome.published} entries, {outcome.accepted} deliveries,"
        f" {len(outcome.ages)} of them again"
    )
    return _tell(outcome.complaints)


def take_over(arguments: list[str] | None = None) -> int:
    parser = _parser("takeovers")
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="fanfare-takeovers-") as name:
        directory = Path(name)
        with _database(directory) as (settings, _):
            campaign = TakeoverCampaign(
                asked.seed, asked.rounds, directory, settings["FANFARE_DATABASE"]
            )
            outcome = asyncio.run(campaign.run())
    print(
        f"{outcome.takeovers} takeovers; {outcome.published} entries,"
        f" {outcome.accepted} deliveries, {outcome.copies} of them again"
    )
    return _tell(outcome.complaints)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"scripts/soak {name}", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    return parser


@contextmanager
def _database(directory: Path) -> Iterator[tuple[Mapping[str, str], DurableServer]]:
    """The settings of a hub on a new server, and that server."""
    with durable_server() as server, server.database() as location:
        settings = {
            **LOOPBACK,
            "FANFARE_DATABASE": location,
            "FANFARE_STATE_DIR": str(directory / "state"),
        }
        yield settings, server


def _tell(complaints: Sequence[str]) -> int:
    print("\n".join(f"BROKEN  {each[:300]}" for each in complaints) or "nothing lost")
    return 1 if complaints else 0
