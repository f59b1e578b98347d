"""Finding stored entries by their words: the index, and asking it."""
