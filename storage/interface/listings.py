"""What accounts list of their subscriptions."""

from __future__ import annotations

from typing import Protocol

from storage.records import AccountId, Listing, ListingSearch


class ListingStore(Protocol):
    """Active subscriptions of one account; there is none of the anonymous one's."""

    async def page(
        self, account: AccountId, search: ListingSearch, *, skip: int, limit: int
    ) -> Listing:
        """Oldest first. Neither the other accounts' number nor, of what an index
        leads to, the account's own makes a difference."""
        ...
