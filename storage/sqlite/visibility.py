"""Who may read what a feed has told: the one rule, for all statements that ask."""

from __future__ import annotations

from storage.records import NOBODY, OPERATOR


def may_read(viewer: str) -> str:
    """SQL for whether ``viewer`` may read the feed ``f``, a row of ``feeds``.

    ``viewer`` is an expression: an account; NULL, the operator, who reads all;
    `storage.records.NOBODY`, who reads what is public. A private feed opens to accounts
    that subscribe to it, one with credentials to nobody but the operator, and what a
    track query found to the account whose query it is.
    """
    return (
        f"(f.state <> 'removed' AND ({viewer} IS NULL OR f.credentials = '' AND ("
        "NOT f.private OR EXISTS ("
        f"SELECT 1 FROM subscriptions u WHERE u.account_id = {viewer}"
        " AND u.feed_id = f.id AND u.state = 'active')"
        " OR f.state = 'track' AND EXISTS (SELECT 1 FROM track_queries q"
        f" WHERE q.feed_id = f.id AND q.account_id IN ({viewer}, {NOBODY})"
        f" AND {viewer} <> {NOBODY}))))"
    )


OWNER = (
    f"(SELECT nullif(coalesce(max(account_id), {NOBODY}), {OPERATOR})"
    " FROM track_queries WHERE feed_id = {})"
)
"""The viewer whose track query the feed ``{}`` is; of any other feed, nobody."""
