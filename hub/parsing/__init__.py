"""Parsing documents without letting one harm the hub.

Nothing is imported here: a worker process pays for all that its own modules import
(`hub.parsing.worker`), at each start.
"""
