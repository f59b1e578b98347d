"""Ids: typed integers, and the two accounts that always exist."""

from __future__ import annotations

from typing import NewType

AccountId = NewType("AccountId", int)
AuditId = NewType("AuditId", int)
FeedId = NewType("FeedId", int)
EntryId = NewType("EntryId", int)
SubscriptionId = NewType("SubscriptionId", int)
TokenId = NewType("TokenId", int)
ListWatchId = NewType("ListWatchId", int)
PageId = NewType("PageId", int)
PlanId = NewType("PlanId", int)
Position = NewType("Position", int)

BEFORE_ALL = Position(0)
"""The position below every record: the first record has 1."""

NOBODY = AccountId(0)
"""The viewer without an account, who sees only what everybody may see."""
ANONYMOUS = AccountId(1)
"""The account of the open hub; it can never alter another account's subscription."""
OPERATOR = AccountId(2)
"""The account of the administrator's token."""
