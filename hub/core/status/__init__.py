"""What people are told of a feed: its status, its figures, and why it is polled when it is."""
