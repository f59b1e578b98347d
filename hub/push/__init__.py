"""Subscriptions of this hub at hubs of others: kept, confirmed, and what they push."""
