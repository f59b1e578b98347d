"""The crawler's side: sitemaps, collections as streams of bytes, pages as entries."""
