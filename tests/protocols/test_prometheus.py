"""Metrics as text."""

from __future__ import annotations

import math

import pytest

from protocols.prometheus import (
    MetricFamily,
    MetricKind,
    MetricSample,
    histogram_samples,
    render,
)


def family(
    *samples: MetricSample, help: str = "Help.", kind: MetricKind = MetricKind.GAUGE
) -> MetricFamily:
    return MetricFamily(name="example", kind=kind, help=help, samples=samples)


def test_a_metric_has_its_help_its_type_and_its_samples() -> None:
    found = render([family(MetricSample(value=1, labels={"a": "x", "b": "y"}))])
    assert found == (
        b'# HELP example Help.\n# TYPE example gauge\nexample{a="x",b="y"} 1\n'
    )


def test_a_metric_without_labels_has_no_braces() -> None:
    assert render([family(MetricSample(value=2))]).splitlines()[-1] == b"example 2"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, b"0"),
        (3.0, b"3"),
        (0.25, b"0.25"),
        (math.inf, b"+Inf"),
        (-math.inf, b"-Inf"),
        (math.nan, b"NaN"),
    ],
)
def test_numbers_are_written_as_the_format_has_them(value: float, text: bytes) -> None:
    assert render([family(MetricSample(value=value))]).split()[-1] == text


def test_what_would_end_a_label_or_a_line_is_escaped() -> None:
    sample = MetricSample(value=1, labels={"a": 'back\\slash "quoted"\nline'})
    found = render([family(sample, help="two\nlines \\")])
    assert found.splitlines()[0] == rb"# HELP example two\nlines \\"
    assert found.splitlines()[2] == rb'example{a="back\\slash \"quoted\"\nline"} 1'


def test_a_histogram_counts_what_is_at_most_each_bound() -> None:
    samples = histogram_samples((0.1, 1.0), (2, 0, 3), 42.5, {"of": "x"})
    found = render([family(*samples, kind=MetricKind.HISTOGRAM)]).decode().splitlines()
    assert found[1] == "# TYPE example histogram"
    assert found[2:] == [
        'example_bucket{of="x",le="0.1"} 2',
        'example_bucket{of="x",le="1"} 2',
        'example_bucket{of="x",le="+Inf"} 5',
        'example_sum{of="x"} 42.5',
        'example_count{of="x"} 5',
    ]
