"""The way in: due feeds are fetched, parsed, decided on and committed.

Nothing is imported here: each start of a parse worker (`hub.ingest.parse_worker`) would
have to load it.
"""
