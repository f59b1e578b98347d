"""Delivery by live connection: one reader of the log, and all listeners."""
