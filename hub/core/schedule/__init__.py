"""When a feed is polled next, and what that is computed from."""
