"""A demonstration that needs no network: a hub, a publisher and three subscribers."""
