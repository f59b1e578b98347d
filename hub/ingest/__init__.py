"""The way in: due feeds are fetched, parsed, judged, and committed.

Nothing is imported here: a parse worker pays for everything its own modules import
(`hub.ingest.parse_worker`), at each start.
"""
