"""One tree has all errors of the package, each once."""

from __future__ import annotations

import inspect
import re

from storage import errors


def test_the_tree_names_every_error() -> None:
    tree = re.findall(r"^[│ ]*[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    found = [
        name
        for name, each in inspect.getmembers(errors, inspect.isclass)
        if each is not errors.StorageError
    ]

    assert sorted(tree) == sorted(found)
    assert all(issubclass(getattr(errors, name), errors.StorageError) for name in tree)
