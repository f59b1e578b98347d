"""Track queries: words, phrases and conditions that entries are held against.

A query is a topic without a feed; the language is that of Superfeedr's trackers.
`parse_query` reads one, `subject_of` makes of an entry what queries look at.
"""

from protocols.track.parsing import parse_query
from protocols.track.query import Query, QueryError
from protocols.track.subject import Subject, subject_of

__all__ = ["Query", "QueryError", "Subject", "parse_query", "subject_of"]
