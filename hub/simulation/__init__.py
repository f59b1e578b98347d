"""Replaying posting times against ways to plan polls: pure, and the same every time."""
