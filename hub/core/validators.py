"""Which validators the next conditional request carries.

They are kept byte for byte as the server sent them, and belong to one URL.
"""

from __future__ import annotations

from hub.core.fetched import Fetched
from storage.records import Polling, Validators


def next_validators(polling: Polling, fetched: Fetched) -> Validators | None:
    """The validators after an answer.

    "both replaced on each 200, updated from 304 when present; removed when the server
    stops sending one", and "stored even if the body hash is unchanged". An answer that
    was not read whole changes none: its 304 would stand for a body nobody has.
    """
    known = polling.validators
    if fetched.error or _is_outdated(polling, fetched):
        return known
    if fetched.status == 304:
        if known is None:
            return None
        etag = fetched.etag or known.etag
        modified = fetched.last_modified or known.last_modified
        if (fetched.url, etag, modified) == (
            known.url,
            known.etag,
            known.last_modified,
        ):
            return known
        return Validators(url=fetched.url, etag=etag, last_modified=modified)
    if not fetched.etag and not fetched.last_modified:
        return None
    return Validators(
        url=fetched.url, etag=fetched.etag, last_modified=fetched.last_modified
    )


def _is_outdated(polling: Polling, fetched: Fetched) -> bool:
    """Never an older validator after a newer one."""
    return polling.last_fetch is not None and fetched.at < polling.last_fetch
