"""The Site Content Protocol 0.1: collections of pages, and the sitemap that names them.

Here is the publisher's side: pages from entries, collections, sitemap. The crawler's
is in `protocols.scp.read`.
"""
