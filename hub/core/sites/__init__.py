"""Sites: sources that take many requests to read.

A walk, a pure generator, decides what to request next (`hub.core.sites.walk_steps`); a
loop around it fetches and commits (`hub.sites.site_reader`).
"""
