"""Benchmarks of the hub, each against a bare floor from the same run."""
