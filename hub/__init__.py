"""Fanfare, a self-hosted push hub for feeds: the running hub."""

__version__ = "0.1.0"
PRODUCT = f"Fanfare/{__version__}"
"""The product in the User-Agent."""
