"""What accounts list of their subscriptions."""

from __future__ import annotations

from typing import Protocol

from storage.records import AccountId, Listing, ListingSearch


class ListingStore(Protocol):
    """Active subscriptions of one account; there is none of the anonymous one's."""

    async def page(
        self,
        account: AccountId,
        search: ListingSearch,
        *,
        skip: int,
        limit: int,
        has_total: bool = True,
    ) -> Listing:
        """Oldest first; ``has_total`` False: the total is not wanted, and 0.

        Neither the other accounts' number nor, of what an index leads to, the
        account's own makes a difference, and neither does how much is skipped of all,
        or of one selection by format, callback or host.
        """
        ...
