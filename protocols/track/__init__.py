"""Track queries: words, phrases and conditions that entries are held against.

A query is a topic without a feed; the language is that of Superfeedr's trackers.
`parse_query` reads one, `subject_of` makes of an entry what queries look at.
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
