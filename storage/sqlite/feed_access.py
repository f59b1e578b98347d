"""Which feed a URL means, and who may read it: one rule for all statements.

A URL means a resource, whatever its spelling. There may be several feeds of one
resource: with other credentials, or added before spellings counted as one. Then the one
with that very spelling comes first.
"""

from __future__ import annotations

import sqlite3

from protocols.urls import resource_url, selector_of
from storage.records import NOBODY, OPERATOR, NewFeed
from storage.secrets import SecretBox
from storage.sqlite.rows import decrypt_credentials, hash_key


def may_read(viewer: str) -> str:
    """SQL for whether ``viewer`` may read the feed ``f``, a row of ``feeds``.

    ``viewer`` is an expression: an account; NULL, the operator, who reads everything;
    or `storage.records.NOBODY`, who reads what is public. A private feed is readable by
    accounts that subscribe to it, one with credentials only by the operator, and a
    track query's results by the account that owns the query.
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
"""SQL for the viewer who owns the track query that feed ``{}`` stands for; `NOBODY` for
any other feed."""


OF_RESOURCE = (
    " FROM feeds f JOIN stored_feeds v ON v.id = f.id WHERE f.id IN ("
    "SELECT id FROM feeds WHERE resource_hash = ?1"
    " UNION ALL SELECT feed_id FROM topics WHERE url = ?2"
    " AND NOT EXISTS (SELECT 1 FROM feeds WHERE resource_hash = ?1))"
    "{where}"
    " ORDER BY f.url = ?2 AND (f.state <> 'removed' OR f.credentials <> '') DESC,"
    " f.state <> 'removed' DESC, (f.credentials = '') = (f.url <> ?2) DESC, f.id"
)
"""Feeds of a resource, the most likely first; its parameters are `resource_keys`.

If there are none, the feed that a subscribed topic leads to. Of two that are spelled
alike, the one with credentials is the operator's own, and comes before the one that
others get by subscribing.
"""


WITHOUT_CREDENTIALS = " AND f.credentials = ''"


def hash_resource(url: str) -> bytes:
    return hash_key(resource_url(url))


def hash_page(url: str) -> bytes:
    """The hash of the page that a URL selects a part of; b"" for any other URL."""
    page = url.partition("#")[0]
    return hash_resource(page) if selector_of(url) else b""


def resource_keys(url: str) -> tuple[bytes, str]:
    return hash_resource(url), url


def find_known(
    feed: NewFeed, box: SecretBox, connection: sqlite3.Connection
) -> int | None:
    """The feed that is being added again, if there is one.

    It has the same spelling, or the same credentials; ``as_anybody`` finds none with
    credentials. Under another spelling, other credentials make another feed: what one
    set of credentials shows must not be sent to subscribers of the other feed.
    """
    rows = connection.execute(
        "SELECT f.id, f.url, f.credentials"
        + OF_RESOURCE.format(where=WITHOUT_CREDENTIALS if feed.as_anybody else ""),
        resource_keys(feed.url),
    )
    for feed_id, url, encrypted in rows.fetchall():
        if url == feed.url or feed.credentials == decrypt_credentials(encrypted, box):
            return int(feed_id)
    return None
