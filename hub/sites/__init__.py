"""Finds what is at a URL, and reads sites, which takes many requests."""
