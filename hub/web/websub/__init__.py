"""The open WebSub hub, pings, and what other people's hubs push."""
