"""The HTTP surface: decode, call the service, encode."""
