"""What people are told of a feed: status, figures, and why it is polled when it is."""
