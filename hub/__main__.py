"""The start of the `fanfare` command, and of ``python -m hub``.

The hub's other packages are called `protocols` and `storage`, as packages of others may
be. Where one of those is found in place of ours, nothing may be imported before that is
said, so this module takes nothing but the standard library.
"""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("protocols", "storage")
MARK = b"Fanfare"
"""In the first file of each of our packages. One of others may have been installed
over it."""


class ForeignPackage(Exception):
    """A package of the hub's name is not the hub's; says which and where it is."""


def refuse_foreign_packages() -> None:
    """Raises `ForeignPackage`. Imports none of them."""
    for name in PACKAGES:
        ours = Path(__file__).parents[1] / name / "__init__.py"
        spec = find_spec(name)
        origin = spec.origin if spec else None
        if origin is None:
            raise ForeignPackage(f"the package {name} of the hub is missing: {ours}")
        if Path(origin).resolve() != ours.resolve() or not is_ours(ours):
            raise ForeignPackage(f"{origin} is not the hub's package {name}")


def is_ours(first_file: Path) -> bool:
    """Whether it has the mark; true as well if it cannot be read, as in an archive."""
    with suppress(OSError):
        return MARK in first_file.read_bytes()
    return True


def main() -> None:
    try:
        refuse_foreign_packages()
    except ForeignPackage as error:
        sys.exit(
            f"fanfare: {error}\n"
            "Another program's package is in the place of the hub's, or before it on"
            " Python's path.\nInstall the hub where nothing else is installed: by"
            " `uv tool install fanfare-hub`, by\n`pipx install fanfare-hub`, in an"
            " environment of its own, or as an image; and unset PYTHONPATH."
        )
    from hub.cli import main as run_command

    run_command(prog_name="fanfare")


if __name__ == "__main__":
    main()
