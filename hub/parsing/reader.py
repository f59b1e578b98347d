"""Which program it is that makes entries of bytes."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from lxml import etree

from hub.core.remembered import READER_BYTES


@cache
def reader_name() -> bytes:
    """Of this program. What another one read is not relied upon: after an upgrade
    each feed is read whole once."""
    return name_of(files("protocols"), files("hub.core"))


def name_of(*code: Traversable) -> bytes:
    """Another one with every change of the code, or of what it is built upon."""
    versions = (sys.version_info[:2], etree.LXML_VERSION, etree.LIBXML_VERSION)
    name = blake2b(repr(versions).encode(), digest_size=READER_BYTES)
    for folder in code:
        _add(name, folder)
    return name.digest()


def _add(name: blake2b, folder: Traversable) -> None:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            _add(name, each)
        elif each.name.endswith(".py"):
            source = each.read_bytes()
            name.update(f"{each.name} {len(source)} ".encode() + source)
