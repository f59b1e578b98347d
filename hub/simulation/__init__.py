"""Posting times replayed against ways to plan polls: pure, and reproducible."""
