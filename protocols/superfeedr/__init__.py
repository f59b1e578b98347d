"""The Superfeedr schema: status, Atom and JSON renderings."""
