"""The way out by webhook: the dispatcher's parts, each reading the log in its way."""
