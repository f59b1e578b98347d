"""What an OpenFeeder site answers, as values."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Discovery(Struct, frozen=True, kw_only=True, gc=False):
    """``/.well-known/openfeeder.json`` (2.1). URLs are absolute."""

    endpoint: str
    site_url: str
    name: str = ""
    language: str = ""
    description: str = ""


class Listed(Struct, frozen=True, kw_only=True, gc=False):
    """An item of an index, or of a differential answer.

    ``reference`` is its URL as the site gives it, which ``?url=`` is asked for;
    ``url`` the absolute one. ``digest`` is of all that is said of it here.
    """

    reference: str
    url: str
    digest: int
    title: str = ""
    summary: str = ""
    author: str = ""
    published: datetime | None = None
    updated: datetime | None = None


class Index(Struct, frozen=True, kw_only=True, gc=False):
    """One page of the index (3.3). ``is_whole``: no item had to be left out.

    ``total_pages`` is 0 where nothing is said, or nothing that can be.
    """

    items: tuple[Listed, ...]
    total_pages: int
    is_whole: bool
    problems: tuple[str, ...] = ()


class Tombstone(Struct, frozen=True, kw_only=True, gc=False):
    reference: str
    url: str
    at: datetime | None


class Changes(Struct, frozen=True, kw_only=True, gc=False):
    """A differential answer (3.4): ``changed`` are those added and updated.

    ``cursor`` is what the next one is to be asked with; "" if none was given.
    """

    changed: tuple[Listed, ...]
    deleted: tuple[Tombstone, ...]
    cursor: str
    tracks_deletions: bool
    is_whole: bool
    problems: tuple[str, ...] = ()


class Chunk(Struct, frozen=True, kw_only=True, gc=False):
    text: str
    type: str


class Page(Struct, frozen=True, kw_only=True, gc=False):
    """The content of one page (3.2). ``missing``: chunks that were not sent."""

    url: str
    chunks: tuple[Chunk, ...]
    missing: int
    title: str = ""
    author: str = ""
    language: str = ""
    summary: str = ""
    published: datetime | None = None
    updated: datetime | None = None
