"""Fanfare's storage: everything durable, the log and its readers, behind one
interface."""
