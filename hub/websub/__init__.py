"""The open hub: admission of topics, verification of callbacks, and publish pings."""
