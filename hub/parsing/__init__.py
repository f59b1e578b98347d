"""Parsing documents without letting one harm the hub."""

from __future__ import annotations

from hub.parsing.parser import Parser, WorkerParser

__all__ = ["Parser", "WorkerParser"]
