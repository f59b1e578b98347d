"""The embedded engine: one SQLite file that one process owns."""

from storage.sqlite.backup import copy_at_rest
from storage.sqlite.compaction import compact_database
from storage.sqlite.file_identity import lock_database, owned
from storage.sqlite.integrity import find_damage, find_damage_at_rest
from storage.sqlite.opening import open_database
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.restoring import restore_database
from storage.sqlite.stored_entries import read_times

__all__ = [
    "SqliteStorage",
    "compact_database",
    "copy_at_rest",
    "find_damage",
    "find_damage_at_rest",
    "lock_database",
    "open_database",
    "owned",
    "read_times",
    "restore_database",
]
