"""How PostgreSQL would carry out statements if its tables were large.

A server of its own explains what hubs ask of it, statements within functions, too. Its
tables are empty, but it plans by the statistics of a database with a million feeds and
ten million subscriptions (``tests/data/postgres_statistics.json``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from storage.copying import copy_content
from tests.support.filled_database import make_filled
from tests.support.postgres_server import DurableServer, durable_server

STATISTICS: Final[Mapping[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "postgres_statistics.json").read_text()
)
"""By table its rows, and by column: the share of NULL, the width, how many values
there are (below 0: a share of the rows), and which are common, and how common."""
_EXPLAINING: Final = {
    "log_min_messages": "log",
    "logging_collector": "on",
    "log_destination": "jsonlog",
    "log_filename": "plans",
    "log_rotation_size": "0",
    "log_checkpoints": "off",
    "fsync": "off",
}
_HUBS: Final = (
    "-csession_preload_libraries=auto_explain",
    "-cauto_explain.log_min_duration=0",
    "-cauto_explain.log_nested_statements=on",
    "-cauto_explain.log_format=json",
    # Each table is a page as far as can be seen.
    "-cseq_page_cost=10000",
)


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A step of a plan. ``above``: what takes its rows, the topmost first."""

    query: str
    kind: str
    table: str
    rows: float
    taken: float  # the rows of what is below it
    has_condition: bool  # of its index
    above: tuple[str, ...]


class ExplainingServer:
    def __init__(self, server: DurableServer, log: Path, template: str) -> None:
        self._server = server
        self._log = log
        self._template = template

    @contextmanager
    def database(self) -> Iterator[str]:
        """The location of a new database for a hub, for a while."""
        with self._server.database(self._template) as location:
            yield f"{location}&options={'%20'.join(_HUBS).replace('=', '%3D')}"

    def nodes(self) -> Iterator[ExplainedNode]:
        """Of all plans so far, of each statement in the same shape once."""
        known = set()
        with self._log.open(encoding="utf-8") as lines:
            for line in lines:
                _, is_plan, plan = json.loads(line)["message"].partition("plan:")
                if is_plan and plan not in known:
                    known.add(plan)
                    found = json.loads(plan)
                    yield from _nodes(
                        " ".join(found["Query Text"].split()), found["Plan"]
                    )


def _nodes(
    query: str, node: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[ExplainedNode]:
    below = node.get("Plans", [])
    yield ExplainedNode(
        query=query,
        kind=node["Node Type"],
        table=node.get("Relation Name", ""),
        rows=node["Plan Rows"],
        taken=max((each["Plan Rows"] for each in below), default=0),
        has_condition="Index Cond" in node,
        above=above,
    )
    for each in below:
        yield from _nodes(query, each, (*above, node["Node Type"]))


@contextmanager
def explaining_server(directory: Path) -> Iterator[ExplainingServer]:
    """``directory``: one that is empty; the server runs as another user."""
    log = directory / "log"
    log.mkdir(mode=0o777)
    log.chmod(0o777)
    for each in (directory, *directory.parents[:2]):
        each.chmod(each.stat().st_mode | 0o111)
    with durable_server(**_EXPLAINING, log_directory=str(log)) as server:
        template = server.create()
        _make(server.location(template), directory)
        yield ExplainingServer(server, log / "plans.json", template)


def _make(location: str, directory: Path) -> None:
    """A database of which each table has a page, without rows, and statistics."""

    filled = directory / "filled.db"
    asyncio.run(make_filled(filled))
    copy_content(
        f"sqlite:{filled}", location, directory / "fanfare", lambda *stage: None
    )
    with psycopg.connect(location, autocommit=True) as connection:
        connection.execute(_EMPTY)
        for table, found in STATISTICS.items():
            connection.execute(_OF_TABLE, (table, found["rows"]))
            for column, values in found["columns"].items():
                connection.execute(
                    _OF_COLUMN, (table, column, *values, *[None] * (5 - len(values)))
                )


_OF_TABLE: Final = (
    "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', %s::text,"
    " 'relpages', 1, 'reltuples', %s::real)"
)
_OF_COLUMN: Final = (
    "SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', %s::text,"
    " 'attname', %s::text, 'inherited', FALSE, 'null_frac', %s::real,"
    " 'avg_width', %s::int, 'n_distinct', %s::real, 'most_common_vals', %s::text,"
    " 'most_common_freqs', %s::real[])"
)
_EMPTY: Final = """
SET session_replication_role = replica;
INSERT INTO searched VALUES (1, 0, 1, '');
INSERT INTO search_queue VALUES (1);
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition
        AND relname NOT IN ('fanfare_schema', 'hub', 'log_head', 'search_state')
    LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    FOR name IN SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
    LOOP
        PERFORM setval(name, 1, FALSE);
    END LOOP;
END $$;
INSERT INTO accounts (id, name) VALUES (1, 'anonymous'), (2, 'operator');
SELECT setval('accounts_id_seq', 2);
INSERT INTO page_sections VALUES ('');
UPDATE hub SET key_check = '', seen_at = 0, checked_at = 0;
UPDATE log_head SET head = 0, tail = 0, queries = 0;
UPDATE search_state SET position = 0, days = 0, unread = 0;
"""
