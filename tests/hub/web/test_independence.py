"""The readers that judge what is published are nobody's but their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "support"
OURS = {"hub", "protocols", "storage", "scripts", "tests"}


def imported(source: str) -> Iterator[str]:
    """The packages at the top that a module takes from."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("name", ["scp_crawler", "scp_schemas", "openfeeder_client"])
def test_a_reader_shares_no_code_with_the_hub(name: str) -> None:
    found = set(imported((SUPPORT / f"{name}.py").read_text()))
    assert "json" in found
    assert not found & OURS
