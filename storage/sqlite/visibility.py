"""Who may read what a feed has told: the one rule, for all statements that ask."""

from __future__ import annotations

from storage.records import NOBODY


def may_read(viewer: str) -> str:
    """SQL for whether ``viewer`` may read the feed ``f``, a row of ``feeds``.

    ``viewer`` is an expression: an account; NULL, the operator, who reads all;
    `storage.records.NOBODY`, who reads what is public. A private feed opens to accounts
    that subscribe to it, one with credentials to nobody but the operator. Whoever has
    an account may read what a track query found.
    """
    return (
        f"(f.state <> 'removed' AND ({viewer} IS NULL OR f.credentials = '' AND ("
        f"NOT f.private OR f.state = 'track' AND {viewer} <> {NOBODY} OR EXISTS ("
        f"SELECT 1 FROM subscriptions u WHERE u.account_id = {viewer}"
        " AND u.feed_id = f.id AND u.state = 'active'))))"
    )
