"""Parsing documents without letting one harm the hub."""

from __future__ import annotations

from hub.parsing.parser import Parser, WorkerParser
from hub.parsing.reader import reader_name

__all__ = ["Parser", "WorkerParser", "reader_name"]
