"""Makers of the values that entries are made of (`protocols.quick`)."""

from __future__ import annotations

from typing import Final

from protocols.model import Author, Category, Entry, Link, Text
from protocols.quick import maker, maker_by_position

new_author: Final = maker(Author)
new_category: Final = maker_by_position(Category)
new_entry: Final = maker_by_position(Entry)
new_link: Final = maker_by_position(Link)
new_text: Final = maker_by_position(Text)
