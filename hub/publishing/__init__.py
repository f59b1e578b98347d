"""What the hub publishes: pages, collections for crawlers, OpenFeeder's answers."""
