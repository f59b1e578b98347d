"""Subscriptions of this hub at other hubs: kept, confirmed, and what they push."""
