"""The log, its readers and everything durable, behind one interface."""
