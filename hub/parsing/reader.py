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
    """Another one with every change of the code or of what it is built upon.

    What a document was read as is not relied upon any longer then: after an upgrade
    each feed is read whole once.
    """
    versions = (sys.version_info[:2], etree.LXML_VERSION, etree.LIBXML_VERSION)
    name = blake2b(repr(versions).encode(), digest_size=READER_BYTES)
    _add(name, files("protocols"))
    return name.digest()


def _add(name: blake2b, folder: Traversable) -> None:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir() and each.name != "__pycache__":
            _add(name, each)
        elif each.name.endswith(".py"):
            name.update(each.name.encode() + b"\0" + each.read_bytes())
