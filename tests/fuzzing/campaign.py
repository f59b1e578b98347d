"""Many trials of one reader, in a process that a document may take with it.

Each is made of the seed and a number, so that whoever finds a process dead knows which
document it died of.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random
from time import monotonic
from typing import Final

from tests.fuzzing.contracts import Contract
from tests.fuzzing.mutations import mutate
from tests.fuzzing.trial import complaint

MEMORY_BYTES: Final = 1 << 30
"""That a process may take beyond what it has at its start: as a parse worker."""
STRICT_SECONDS: Final = 2.0
"""Of the processor, for one document of 64 KiB."""
_PATIENCE: Final = 300.0
_AT_A_TIME: Final = 500
_context = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Finding:
    contract: Contract
    seed: int
    number: int
    complaint: str

    @property
    def body(self) -> bytes:
        return document(self.contract, self.seed, self.number)


def document(contract: Contract, seed: int, number: int) -> bytes:
    """The same one each time, as long as the corpus is the same."""
    random = Random(f"{contract.name} {seed} {number}")
    return mutate(random, [*contract.documents().values()])


@dataclass(slots=True)
class Campaign:
    """``tried`` counts documents; all that was wrong with one comes out of `run`."""

    contract: Contract
    seed: int
    seconds: float
    tried: int = 0

    def run(self) -> Iterator[Finding]:
        end = monotonic() + self.seconds
        while monotonic() < end:
            yield from self._run_some(end)

    def _run_some(self, end: float) -> Iterator[Finding]:
        ours, theirs = _context.Pipe(duplex=False)
        arguments = (self.contract, self.seed, self.tried, end, theirs)
        process = _context.Process(target=_try_some, args=arguments)
        process.start()
        theirs.close()
        number = self.tried
        try:
            while ours.poll(_PATIENCE):
                number, said = ours.recv()
                self.tried = number + 1
                if said:
                    yield self._finding(number, said)
            yield self._finding(self.tried, "did not end")
            self.tried += 1
        except EOFError:
            process.join()
            if process.exitcode:
                yield self._finding(self.tried, f"died: {process.exitcode}")
                self.tried += 1
        finally:
            process.kill()
            process.join()
            ours.close()

    def _finding(self, number: int, said: str) -> Finding:
        return Finding(self.contract, self.seed, number, said)


def _try_some(
    contract: Contract, seed: int, start: int, end: float, told: Connection
) -> None:
    """Each with its own grant of memory, until it is time for another process."""
    _bound_memory()
    documents = [*contract.documents().values()]
    for number in range(start, start + _AT_A_TIME):
        if monotonic() > end:
            return
        body = mutate(Random(f"{contract.name} {seed} {number}"), documents)
        told.send((number, complaint(contract, body, STRICT_SECONDS)))


def _bound_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
