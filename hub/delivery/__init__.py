"""Delivery by webhook: the parts of the dispatcher. Each reads the log in its own
way."""
