"""A disk that fails beneath a real SQLite: system calls answer with an error.

SQLite lets the calls that it makes be replaced (``xSetSystemCall`` of ``sqlite3_vfs``).
Those that write and shorten files answer here what a test says, in the whole process
and on any thread, so that all above them is real, also SQLite's own handling of errors.
Flushes are not among the calls that can be replaced.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_size_t, c_ssize_t, c_void_p
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

FULL: Final = errno.ENOSPC
READ_ONLY: Final = errno.EROFS
BROKEN: Final = errno.EIO

_WRITING: Final[dict[str, tuple[Any, ...]]] = {
    "pwrite": (c_ssize_t, c_int, c_void_p, c_size_t, c_int64),
    "pwrite64": (c_ssize_t, c_int, c_void_p, c_size_t, c_int64),
    "write": (c_ssize_t, c_int, c_void_p, c_size_t),
    "ftruncate": (c_int, c_int, c_int64),
}
"""The types of each call: that of its result, then those of its arguments."""


@dataclass(slots=True)
class FailingDisk:
    """``error``: the `errno` of each write from now on; 0: the disk is well.

    ``unflushed``: how many flushes fail from now on, after writes that did not.
    """

    error: int = 0
    unflushed: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by the call's name


class _Vfs(ctypes.Structure):
    """``struct sqlite3_vfs``, https://sqlite.org/c3ref/vfs.html."""

    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", c_void_p),
        ("methods", c_void_p * 12),  # xDelete to xCurrentTimeInt64
        ("xSetSystemCall", CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)),
        ("xGetSystemCall", CFUNCTYPE(c_void_p, c_void_p, c_char_p)),
    )


class _FileMethods(ctypes.Structure):
    """``struct sqlite3_io_methods``, https://sqlite.org/c3ref/io_methods.html."""

    _fields_ = (
        ("iVersion", c_int),
        ("before", c_void_p * 4),  # xClose, xRead, xWrite, xTruncate
        ("xSync", c_void_p),
        ("behind", c_void_p * 13),  # xFileSize to xUnfetch
    )


_OPEN: Final = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_SYNC: Final = CFUNCTYPE(c_int, c_void_p, c_int)
_OF_OPEN_FILES: Final[list[Any]] = []
"""Methods of files that may stay open for longer than the test."""


@contextmanager
def failing_disk() -> Iterator[FailingDisk]:
    """Put a failing disk beneath all databases of this process; at the end it is gone.

    Skips the test where SQLite was built into the interpreter and cannot be reached.
    """
    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = c_void_p
        address = library.sqlite3_vfs_find(None)
    except (AttributeError, OSError):
        pytest.skip("the interpreter's SQLite cannot be reached")
    vfs, disk, kept = _Vfs.from_address(address), FailingDisk(), []
    opening = vfs.xOpen
    intercepted = _opening(disk, opening)
    try:
        vfs.xOpen = ctypes.cast(intercepted, c_void_p)
        for name, types in _WRITING.items():
            original = vfs.xGetSystemCall(address, name.encode())
            if original:  # or this SQLite uses another call
                call = _intercepted(disk, name, original, types)
                kept.append((call, name))
                vfs.xSetSystemCall(address, name.encode(), ctypes.cast(call, c_void_p))
        yield disk
    finally:
        disk.error = disk.unflushed = 0
        vfs.xOpen = opening
        for _call, name in kept:
            vfs.xSetSystemCall(address, name.encode(), None)  # its default


def _intercepted(
    disk: FailingDisk, name: str, original: int, types: tuple[Any, ...]
) -> Any:
    prototype = CFUNCTYPE(*types, use_errno=True)
    make = prototype(original)

    def call(*arguments: int) -> int:
        if not disk.error:
            return int(make(*arguments))
        disk.refused[name] += 1
        ctypes.set_errno(disk.error)
        return -1

    return prototype(call)


def _opening(disk: FailingDisk, original: int) -> Any:
    make = _OPEN(original)

    def call(vfs: int, name: int, file: int, flags: int, told: int) -> int:
        result = int(make(vfs, name, file, flags, told))
        methods = c_void_p.from_address(file)
        if methods.value:
            copy = _FileMethods.from_buffer_copy(
                _FileMethods.from_address(methods.value)
            )
            sync = _flush(disk, copy.xSync)
            copy.xSync = ctypes.cast(sync, c_void_p)
            _OF_OPEN_FILES.extend((copy, sync))
            methods.value = ctypes.addressof(copy)
        return result

    return _OPEN(call)


def _flush(disk: FailingDisk, original: int) -> Any:
    make = _SYNC(original)

    def call(file: int, flags: int) -> int:
        if not disk.unflushed:
            return int(make(file, flags))
        disk.unflushed -= 1
        disk.refused["xSync"] += 1
        return sqlite3.SQLITE_IOERR_FSYNC

    return _SYNC(call)
