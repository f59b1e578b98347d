"""The embedded engine: one SQLite file that one process owns."""

from storage.sqlite.entries import read_times
from storage.sqlite.opening import copy_at_rest, open_database
from storage.sqlite.operations import SqliteStorage

__all__ = ["SqliteStorage", "copy_at_rest", "open_database", "read_times"]
