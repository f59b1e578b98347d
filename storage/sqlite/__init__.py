"""The embedded engine: one SQLite file that one process owns."""

from storage.sqlite.opening import copy_at_rest, open_database
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.stored_entries import read_times

__all__ = ["SqliteStorage", "copy_at_rest", "open_database", "read_times"]
