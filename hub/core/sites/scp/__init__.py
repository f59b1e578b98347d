"""SCP sites: what is read of them, in which order, and what it changes."""
