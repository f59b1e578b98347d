"""``python -m hub.cli``: the same as ``fanfare``."""

from __future__ import annotations

from hub.cli import main

main(prog_name="fanfare")
