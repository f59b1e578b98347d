"""What ``docs/index.md`` lists, which is the manual's order, and ``docs/llms.txt``,
which tells language models the same.

    .venv/bin/python -m scripts.manual_contents

writes the latter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1] / "docs"

_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE: Final = re.compile(r"^- \[(.+?)\]\((.+?\.md)\): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ManualPage:
    """``path`` is relative to ``docs``; ``purpose`` one line of Markdown."""

    title: str
    path: str
    purpose: str


@dataclass(frozen=True, slots=True)
class ManualSection:
    title: str
    pages: tuple[ManualPage, ...]


def read_contents(index: str) -> list[ManualSection]:
    """The sections of an index that list pages, in order."""
    _, *parts = _SECTION.split(index)
    sections = (
        ManualSection(title, tuple(ManualPage(*each) for each in _PAGE.findall(text)))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    )
    return [each for each in sections if each.pages]


def llms_text(index: str) -> str:
    """As https://llmstxt.org has it: a title, a summary, and lists of links."""
    title, summary = index.split("\n\n")[:2]
    lines = [title, "", f"> {' '.join(summary.split())}"]
    for section in read_contents(index):
        lines += ["", f"## {section.title}", "", *listed(section.pages)]
    return "\n".join(lines) + "\n"


def listed(pages: Sequence[ManualPage]) -> list[str]:
    return [f"- [{each.title}]({each.path}): {each.purpose}" for each in pages]


if __name__ == "__main__":
    (DOCS / "llms.txt").write_text(llms_text((DOCS / "index.md").read_text()))
