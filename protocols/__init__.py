"""Fanfare's formats and wire rules: pure functions and values, no I/O and no clock."""
