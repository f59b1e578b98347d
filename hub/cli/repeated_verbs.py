"""Applies a verb to several feeds or subscriptions, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hub.cli import say
from hub.cli.hub_client import Document
from hub.cli.wording import Failure, HubUnreachable, printable, say_json

Verb = Callable[[str, int], Document]
"""Takes the name that was typed and an id; returns what is printed as JSON."""


def repeat_verb(
    names: Sequence[str],
    find: Callable[[str], Sequence[int]],
    verb: Verb,
    is_failure: Callable[[Document], bool] = lambda found: False,
    *,
    what: str,
    as_json: bool,
) -> None:
    """Apply a verb to each thing that the names stand for, also after one has failed.

    Raises `Failure` at the end if any failed, with their number; ``what`` says what
    they are. Raises `HubUnreachable` at once.
    """
    done: list[Document] = []
    failures: list[Failure] = []

    @contextmanager
    def noting_failure(name: str, *, is_alone: bool) -> Iterator[None]:
        try:
            yield
        except HubUnreachable:
            raise
        except Failure as error:
            failures.append(error)
            if not is_alone:
                say(f"{printable(name)}\n  {printable(error.message)}", err=True)

    for name in names:
        ids: Sequence[int] = ()
        with noting_failure(name, is_alone=len(names) == 1):
            ids = find(name)
        for each in ids:
            with noting_failure(name, is_alone=len(names) == len(ids) == 1):
                done.append(verb(name, each))
    if as_json:
        say_json(done)
    total = len(done) + len(failures)
    if total == 1 and failures:
        raise failures[0]
    failed = len(failures) + sum(map(is_failure, done))
    if failed:
        raise failed_of(failed, total, what)


def failed_of(failed: int, total: int, what: str) -> Failure:
    return Failure(f"{failed:,} of {total:,} {what} failed")
