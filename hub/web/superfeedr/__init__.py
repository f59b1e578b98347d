"""The Superfeedr-compatible API: ``/`` and ``/hubbub``, one path and many modes."""
