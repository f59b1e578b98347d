"""The Site Content Protocol 0.1: collections of pages, and sitemaps that name them."""
