"""A server of OpenFeeder 1.0: its documents, what they leave out, its parameters."""
