"""Who publishers are told is asking."""

from __future__ import annotations

from dataclasses import dataclass

from protocols.http import user_agent
from storage.records import FetchTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What is "" is left out."""

    product: str = "Fanfare"  # with its version: Fanfare/1.0
    url: str = ""
    contact: str = ""  # a URL or mail address

    @property
    def of_hub(self) -> str:
        """For a request that is made for no feed yet."""
        return user_agent(self.product, url=self.url, contact=self.contact)

    def user_agent(self, target: FetchTarget) -> str:
        return user_agent(
            self.product,
            url=self.url,
            contact=self.contact,
            subscribers=target.subscribers,
            feed_id=target.feed.id,
        )
