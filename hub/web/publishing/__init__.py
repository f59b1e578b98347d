"""What the hub publishes: topics, files for crawlers, OpenFeeder, pages for people."""
