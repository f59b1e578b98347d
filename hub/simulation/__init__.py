"""Posting times replayed against ways to plan polls: without I/O, and reproducible."""
