"""``python -m hub``: the same as ``fanfare``."""

from __future__ import annotations

from fanfare_hub import main

main()
