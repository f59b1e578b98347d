"""Subscriptions of this hub at other hubs: requested, confirmed, and what they push."""
