"""Sources of many requests: sites that are read in steps, and what is at a URL."""
