"""Hosts that do not answer, and until when their feeds are not asked."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hub.core.circuit import Circuit

MOST_HOSTS = 10_000


@dataclass(frozen=True, slots=True)
class _Silent:
    circuit: Circuit
    until: float


class DeadHosts:
    """Keeps hosts since their first silence; an answer and they are forgotten, as are
    those longest silent of too many. Times are monotonic seconds, given."""

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._most_hosts = most_hosts
        self._silent: OrderedDict[str, _Silent] = OrderedDict()

    def __len__(self) -> int:
        return len(self._silent)

    def answered(self, host: str) -> None:
        self._silent.pop(host, None)

    def silent(self, host: str, now: float) -> float:
        """Seconds for which the host is now left alone; 0: not yet."""
        known = self._silent.pop(host, None)
        circuit = (known.circuit if known else Circuit()).after_silence()
        self._silent[host] = _Silent(circuit, now + circuit.rest)
        if len(self._silent) > self._most_hosts:
            self._silent.popitem(last=False)
        return circuit.rest

    def rest(self, host: str, now: float) -> float:
        """Seconds that are left of it."""
        known = self._silent.get(host)
        return max(0.0, known.until - now) if known else 0.0
