"""Errors of the storage package. Driver exceptions never leave it.

StorageError
├── DatabaseUnusable         cannot be opened: corrupt, not a database, no permission
│   ├── DatabaseLocked       another process owns the file
│   ├── DatabaseTooNew       written by a newer version of this program
│   └── DatabaseOutdated     migrations are pending and were not asked for
├── WriteFailed              the transaction was rolled back; nothing of it is stored
│   ├── StorageFull          no space left (or a quota, or a read-only file)
│   └── DestinationTaken     there is a file where a backup is to go
├── CopyDiffers              a copy is not what it was made from
├── OutcomeUnknown           the transaction is stored, or it is not: find out
├── BodyRequired             commit again, with the document
├── StaleQueries             commit again, matched against the current queries
├── TermEnded                the node is not a member any more: it joins anew
├── StorageBusy              the bounded write queue is full; try again later
├── StorageClosed            the database is closed, or closing
├── SubscriptionPaused       it is sent nothing until it is resumed
└── NotFound                 no such feed, subscription or dead letter
"""

from __future__ import annotations


class StorageError(Exception):
    """Something durable could not be done."""


class DatabaseUnusable(StorageError):
    """The database cannot be opened."""

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        self.reason = reason
        super().__init__(f"{location}: {reason}")


class DatabaseLocked(DatabaseUnusable):
    """Another process owns the file."""

    def __init__(self, location: str, owner: str = "") -> None:
        who = f" (process {owner})" if owner else ""
        super().__init__(location, f"another hub{who} is using this database")


class DatabaseTooNew(DatabaseUnusable):
    """The file was written by a newer version of this program."""

    def __init__(self, location: str, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            location,
            f"schema version {found} is newer than {known}, the newest this"
            " version of Fanfare knows; upgrade Fanfare, or restore a backup that was"
            " made before the database was upgraded",
        )


class DatabaseOutdated(DatabaseUnusable):
    """Migrations are pending and were not asked for."""


class WriteFailed(StorageError):
    """The transaction was rolled back; nothing of it is stored."""


class StorageFull(WriteFailed):
    """No space is left for the database, or it may not be written."""


class OutcomeUnknown(StorageError):
    """The engine was lost while the transaction was being committed, and could not be
    asked since: either all of the transaction is stored, or nothing.

    See `storage.contract` for what the caller does.
    """


class DestinationTaken(WriteFailed):
    """A backup's destination exists, or another backup is about to write it."""


class CopyDiffers(StorageError):
    """A copy of a database does not have the content of what it was made from."""


class BodyRequired(StorageError):
    """The commit lacks the document for an as-is subscription that has just begun."""


class StaleQueries(StorageError):
    """Track queries were added that the commit's entries were not matched against."""


class TermEnded(StorageError):
    """A node's membership was not renewed in time, or another node took its name."""

    def __init__(self, name: str, incarnation: int) -> None:
        super().__init__(f"term {incarnation} of node {name} is over")


class StorageBusy(StorageError):
    """The bounded write queue is full."""


class StorageClosed(StorageError):
    """The database is closed, or closing."""


class NotFound(StorageError):
    """No such feed, subscription or dead letter."""

    def __init__(self, what: str, identifier: object) -> None:
        self.what = what
        self.identifier = identifier
        super().__init__(f"no {what} {identifier}")


class SubscriptionPaused(StorageError):
    """The subscription is sent nothing until it is resumed."""

    def __init__(self, subscription_id: int) -> None:
        super().__init__(
            f"subscription {subscription_id} is paused: resume it, and it is sent what"
            " it missed"
        )
