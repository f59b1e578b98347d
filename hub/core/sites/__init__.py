"""Sites: sources that are read by many requests, and not in one document.

What to ask next is decided by a walk, a pure generator (`hub.core.sites.walk_steps`); a
loop around it fetches and commits (`hub.sites.site_reader`).
"""
