"""uvicorn, as far as the hub has it do more or otherwise."""
