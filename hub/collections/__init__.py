"""The way out for crawlers: pages, and the collections that are built of them (SCP)."""
