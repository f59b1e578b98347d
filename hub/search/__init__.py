"""The index of words, kept by a reader of the log."""
