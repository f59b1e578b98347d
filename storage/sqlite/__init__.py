"""The embedded engine: one SQLite file that one process owns."""

from .database import SqliteStorage
from .entry_times import read_times
from .opening import copy_at_rest, open_database

__all__ = ["SqliteStorage", "copy_at_rest", "open_database", "read_times"]
