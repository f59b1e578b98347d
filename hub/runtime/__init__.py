"""What every part of a hub runs on: clock, threads, background tasks, caches, logs."""
