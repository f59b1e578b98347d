"""The embedded engine: one SQLite file that one process owns."""

from .database import SqliteStorage
from .opening import open_database

__all__ = ["SqliteStorage", "open_database"]
