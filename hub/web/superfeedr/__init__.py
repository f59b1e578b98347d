"""The Superfeedr-compatible API: many modes on one path, ``/`` or ``/hubbub``."""
