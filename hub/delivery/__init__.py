"""Delivery by webhook: the parts of the dispatcher, each reading the log in its way."""
