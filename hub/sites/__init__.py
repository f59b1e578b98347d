"""Sites, which take many requests to read, and the discovery of what is at a URL."""
