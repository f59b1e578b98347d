"""Reading what others publish by the Site Content Protocol 0.1: the crawler's side.

Sitemaps, collections as streams of bytes, pages as entries, and the plan of what to
read next. What this hub publishes itself is beside this package.
"""
