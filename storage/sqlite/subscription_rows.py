"""Rows of subscriptions, and the values they stand for."""

from __future__ import annotations

from storage.records import Format, Subscription, SubscriptionState, Updates
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds, from_milliseconds_or_none
from storage.sqlite.readers import Row

# calling an enumeration takes three times as long, and chunks have 500 members
_FORMATS = {each.value: each for each in Format}
_UPDATES = {each.value: each for each in Updates}
_STATES = {each.value: each for each in SubscriptionState}


def read_subscription(row: Row, box: SecretBox) -> Subscription:
    """From the view ``stored_subscriptions``, whatever follows it."""
    return Subscription(
        id=row[0],
        account=row[1],
        topic=row[2],
        feed_id=row[3],
        callback=row[4],
        secret=box.decrypt(row[5]),
        algorithm=row[6],
        format=_FORMATS[row[7]],
        updates=_UPDATES[row[8]],
        batch=bool(row[9]),
        state=_STATES[row[10]],
        from_position=row[11],
        lease_end=from_milliseconds_or_none(row[12]),
        created_at=from_milliseconds(row[13]),
        exhausted=bool(row[14]),
        ended_reason=row[15],
        former_secret=box.decrypt(row[16]),
        former_until=from_milliseconds_or_none(row[17]),
    )
