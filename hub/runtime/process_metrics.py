"""The process in numbers, by the names that Prometheus's client libraries use.

"Client libraries SHOULD offer what of the Process exports is available": of Linux all
that is listed there; of other systems only what `resource` knows.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from protocols.prometheus import MetricFamily, MetricKind, MetricSample

PROCESS = Path("/proc/self")
BOOT = Path("/proc/stat")


def process_families(process: Path = PROCESS, boot: Path = BOOT) -> list[MetricFamily]:
    """``process``, ``boot``: where Linux tells of a process, and of its own start."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    families = [
        _family(
            "process_cpu_seconds_total",
            "CPU time of the hub, without its parse workers.",
            usage.ru_utime + usage.ru_stime,
            MetricKind.COUNTER,
        ),
        _family(
            "process_max_fds",
            "Files that may be open.",
            resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        ),
    ]
    with suppress(OSError, ValueError, IndexError):
        families += _families_of_linux(process, boot)
    return families


def resident_bytes(process: Path = PROCESS) -> int | None:
    """Resident memory of the hub, without its parse workers; None: it is not told."""
    with suppress(OSError, ValueError, IndexError):
        pages = int((process / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None


def _families_of_linux(process: Path, boot: Path) -> list[MetricFamily]:
    # After the name in brackets, which may hold anything: proc(5) counts from 1.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    started, virtual, pages = (int(fields[number - 3]) for number in (22, 23, 24))
    booted = next(
        int(line.split()[1])
        for line in boot.read_text().splitlines()
        if line.startswith("btime ")
    )
    return [
        _family(
            "process_resident_memory_bytes",
            "Resident memory of the hub, without its parse workers.",
            pages * os.sysconf("SC_PAGE_SIZE"),
        ),
        _family("process_virtual_memory_bytes", "Virtual memory.", virtual),
        _family("process_open_fds", "Open files.", len(os.listdir(process / "fd"))),
        _family(
            "process_start_time_seconds",
            "Start of the process, as Unix time.",
            booted + started / os.sysconf("SC_CLK_TCK"),
        ),
    ]


def _family(
    name: str, help: str, value: float, kind: MetricKind = MetricKind.GAUGE
) -> MetricFamily:
    sample = MetricSample(value=value)
    return MetricFamily(name=name, kind=kind, help=help, samples=(sample,))
