"""The HTTP server: uvicorn, and the hub's extensions of it."""
