"""The way out by live connection: one reader of the log, and all who listen to it."""
