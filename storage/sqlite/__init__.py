"""The embedded engine: one SQLite file that one process owns."""

from storage.sqlite.database import SqliteStorage
from storage.sqlite.entry_times import read_times
from storage.sqlite.opening import copy_at_rest, open_database

__all__ = ["SqliteStorage", "copy_at_rest", "open_database", "read_times"]
