"""The Site Content Protocol 0.1: collections of pages, and the sitemap that names them.

Only the publisher's side is here: pages from entries, collections, sitemap.
"""
