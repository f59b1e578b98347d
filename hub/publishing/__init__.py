"""Making what is published: pages, collections for crawlers, OpenFeeder's answers."""
