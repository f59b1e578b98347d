"""OpenFeeder sites: what to ask one for next, given all that it has answered."""
