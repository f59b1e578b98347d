"""The publisher's side: collections of pages, and the sitemap that names them."""
