"""Metrics in the Prometheus text exposition format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One number; ``suffix`` is what a histogram's series add to the name."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All samples of one metric."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


def histogram_samples(
    bounds: Iterable[float],
    counts: Iterable[int],
    total: float,
    labels: Mapping[str, str],
) -> tuple[Sample, ...]:
    """The series of a histogram.

    ``counts`` has one number for each of the bounds, not cumulated, and a last one
    for what lies above them; ``total`` is the sum of all observed values.
    """
    samples: list[Sample] = []
    seen = 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        seen += count
        samples.append(
            Sample(
                value=seen, labels={**labels, "le": _number(bound)}, suffix="_bucket"
            )
        )
    return (
        *samples,
        Sample(value=total, labels=labels, suffix="_sum"),
        Sample(value=seen, labels=labels, suffix="_count"),
    )


def render(families: Iterable[Family]) -> bytes:
    """The document that a scraper gets."""
    return "".join(_family(family) for family in families).encode()


def _family(family: Family) -> str:
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    lines = [
        f"# HELP {family.name} {help_text}",
        f"# TYPE {family.name} {family.kind}",
        *(_line(family.name, sample) for sample in family.samples),
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escaped(v)}"' for key, v in sample.labels.items())
    shown = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{shown} {_number(sample.value)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """Whole numbers without a fraction; infinities as the format spells them."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(float(value))
