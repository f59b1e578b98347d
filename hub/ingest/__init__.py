"""The way in: due feeds are fetched, parsed, judged, and what they bring is committed.

Nothing is imported here: a parse worker pays for all that its own modules import
(`hub.ingest.parse_worker`), at each start.
"""
