"""Track queries: words, phrases and conditions that entries are matched against.

A query is a topic without a feed; the language is that of Superfeedr's trackers.
`parse_query` parses one, `subject_of` prepares an entry for matching.
"""

from protocols.track.parsing import parse_query
from protocols.track.query import Query, QueryError, canonical
from protocols.track.subject import Subject, subject_of
from protocols.track.track_topics import TrackTopic, is_track_topic, read_track_topic

__all__ = [
    "Query",
    "QueryError",
    "Subject",
    "TrackTopic",
    "canonical",
    "is_track_topic",
    "parse_query",
    "read_track_topic",
    "subject_of",
]
