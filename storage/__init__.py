"""Fanfare's storage: the log, its readers, all that lasts, behind one interface."""
