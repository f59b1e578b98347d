"""When two entries are the same, and when an entry has changed.

An entry is identified by its publisher's id; without one by its link, its enclosure,
or, last, a hash of its content. Keys are compared within one feed only. Long documents
are compared by a checksum.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import blake2b, sha256
from itertools import chain
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from protocols.html import without_noise
from protocols.model import ActivityObject, Author, Entry, IdSource, Link, Text
from protocols.text import LONGEST_PIECE, single_spaced
from protocols.urls import without_scheme, without_tracking

_CIPHER: Final = AESGCM(bytes.fromhex("9e3779b97f4a7c15f39cc0605cedc834"))
_NONCE: Final = bytes(12)


def checksum(document: bytes | memoryview) -> bytes:
    """16 bytes. The value never changes, in no process or version, since it is
    stored.
    """
    return _CIPHER.encrypt(_NONCE, b"", document)


LONGEST_KEY = 1_024
"""Characters; a longer id is represented by its hash."""

CONTENT_HASH_VERSION = 2
"""Increased whenever `content_hash` returns other values for the same entries."""

READING_VERSION = 3
"""Increased with `CONTENT_HASH_VERSION`, and whenever the same documents are read as
entries with more data, or as different ones.
"""

_SILENT_BYTES = 2_047
"""Up to this size hashlib does not release the GIL (HASHLIB_GIL_MINSIZE)."""
_HASHED_EXTENSIONS = ("creator",)
_HASHED_RELATIONS = frozenset({"alternate", "enclosure", "related", "via"})


class Identity(Struct, frozen=True, kw_only=True, gc=False):
    """An entry's key, the id that readers see, and the source of both."""

    key: str
    id: str
    source: IdSource


def key_of_id(id: str) -> str:
    """The form in which ids are compared: NFC, and http the same as https.

    Every run of white space becomes one space, since lines may be broken within an id.
    """
    normal = id if id.isascii() else unicodedata.normalize("NFC", id)
    key = without_scheme(_spaced(normal))
    if len(key) > LONGEST_KEY:
        return f"urn:sha256:{_digest((key,))}"
    return key


def key_of_link(url: str) -> str:
    """Like `key_of_id`, without ``utm_*`` parameters, which do not identify the
    entry.
    """
    return key_of_id(without_tracking(url)) if url else ""


def identify(
    *,
    id: str = "",
    link: str = "",
    enclosure: str = "",
    title: str = "",
    date: datetime | None = None,
    content: str = "",
) -> Identity:
    """Find an entry's identity; arguments are empty if the document lacks them."""
    if id:
        return Identity(key=key_of_id(id), id=id, source=IdSource.FEED)
    if link:
        return Identity(key=key_of_link(link), id=link, source=IdSource.LINK)
    if enclosure:
        key = key_of_link(enclosure)
        return Identity(key=key, id=enclosure, source=IdSource.ENCLOSURE)
    moment = date.isoformat() if date else ""
    urn = f"urn:sha256:{_digest((title, moment, content))}"
    return Identity(key=urn, id=urn, source=IdSource.CONTENT)


def content_hash(entry: Entry) -> str:
    """A hash of an entry's content, which is the same as long as the content is.

    Dates are left out (a date that jitters is no update), and so are pictures, and
    extensions except those of a known meaning: they contain counters and signed URLs.
    Empty fields are not hashed, so that a field new to the model changes no hash. White
    space, http or https and ``utm_*`` parameters make no difference, nor does noise in
    texts (`protocols.html`).
    """
    parts = (f"{name}={_spaced(value)}" for name, value in _facts(entry) if value)
    return f"{CONTENT_HASH_VERSION}:{_digest(parts)}"


def fingerprint(text: str) -> int:
    """A hash of 64 bits; 0 for an empty text."""
    if not text:
        return 0
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "title", entry.title
    yield "rights", entry.rights
    yield from _texts(summary=entry.summary, content=entry.content)
    yield from _links(entry.links)
    yield from _people("author", entry.authors)
    yield from _people("contributor", entry.contributors)
    for category in entry.categories:
        yield "category", f"{category.scheme} {category.term}"
    if entry.geo:
        yield "geo", f"{entry.geo.latitude} {entry.geo.longitude}"
    for verb in entry.verbs:
        yield "verb", verb
    for object_type in entry.object_types:
        yield "object-type", object_type
    yield from chain.from_iterable(map(_object_facts, entry.objects))
    if entry.source:
        yield "source", entry.source.id or entry.source.title
    if entry.unlisted:
        yield "unlisted", "true"
    for name in _HASHED_EXTENSIONS:
        if name in entry.extensions:
            yield name, json.dumps(entry.extensions[name], sort_keys=True)


def _object_facts(activity_object: ActivityObject) -> Iterator[tuple[str, str]]:
    yield "object", activity_object.id
    yield "object-title", activity_object.title
    yield from _texts(object_content=activity_object.content)
    yield from _links(activity_object.links)


def _texts(**texts: Text | None) -> Iterator[tuple[str, str]]:
    return ((name, without_noise(text.value)) for name, text in texts.items() if text)


def _links(links: Iterable[Link]) -> Iterator[tuple[str, str]]:
    return (
        (link.rel, key_of_link(link.href))
        for link in links
        if link.rel in _HASHED_RELATIONS
    )


def _people(role: str, people: Iterable[Author]) -> Iterator[tuple[str, str]]:
    return ((role, f"{each.name} {each.email} {each.uri}") for each in people)


def _spaced(text: str) -> str:
    if " " not in text and text.isprintable():  # there is no other white space
        return text
    return single_spaced(text)


def _digest(parts: Iterable[str]) -> str:
    """Hash each part after its length, so that no two lists give the same input."""
    framed = "".join([f"{len(part)}:{part}" for part in parts])
    text = framed.encode("utf-8", "surrogatepass")
    # A short text is hashed in pieces: while hashlib works on a small one, it does not
    # let other threads run. That takes less time than waking them up, after which they
    # would have to wait again (`hub.runtime.offloading`).
    if len(text) <= _SILENT_BYTES or len(text) > LONGEST_PIECE:
        return sha256(text).hexdigest()
    digest = sha256()
    for start in range(0, len(text), _SILENT_BYTES):
        digest.update(text[start : start + _SILENT_BYTES])
    return digest.hexdigest()
