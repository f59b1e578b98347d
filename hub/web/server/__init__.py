"""The HTTP server: uvicorn, and what the hub extends it by."""
