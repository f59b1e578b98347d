"""Metrics in the Prometheus text exposition format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One number; ``suffix`` is what a histogram's series adds to the metric's name."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """All samples of one metric."""

    name: str
    kind: MetricKind
    help: str
    samples: tuple[MetricSample, ...]


def histogram_samples(
    bounds: Iterable[float],
    counts: Iterable[int],
    total: float,
    labels: Mapping[str, str],
) -> tuple[MetricSample, ...]:
    """The series of a histogram.

    ``counts`` has a number for each of the bounds, not cumulative, and a last one for
    values above them; ``total`` is the sum of all observed values.
    """
    samples: list[MetricSample] = []
    seen = 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        seen += count
        samples.append(
            MetricSample(
                value=seen, labels={**labels, "le": _number(bound)}, suffix="_bucket"
            )
        )
    return (
        *samples,
        MetricSample(value=total, labels=labels, suffix="_sum"),
        MetricSample(value=seen, labels=labels, suffix="_count"),
    )


def render(families: Iterable[MetricFamily]) -> bytes:
    """The document that a scraper gets."""
    return "".join(_family(family) for family in families).encode()


def _family(family: MetricFamily) -> str:
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    lines = [
        f"# HELP {family.name} {help_text}",
        f"# TYPE {family.name} {family.kind}",
        *(_line(family.name, sample) for sample in family.samples),
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, sample: MetricSample) -> str:
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
