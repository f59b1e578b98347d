"""The dashboard and the alert rules name what the hub measures, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from protocols.prometheus import MetricFamily, MetricKind
from scripts.monitoring.__main__ import FOLDER, documents, read_registry
from scripts.monitoring.alerts import RULES
from scripts.monitoring.dashboard import ROWS, dashboard_of


@pytest.fixture
async def families() -> list[MetricFamily]:
    return await read_registry()


def series_of(families: list[MetricFamily]) -> set[str]:
    """Every name that a query may use."""
    suffixes = {MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count")}
    return {
        each.name + suffix
        for each in families
        for suffix in suffixes.get(each.kind, ("",))
    }


def named_in(query: str) -> set[str]:
    return set(re.findall(r"\b(?:fanfare|process)_\w+", query))


async def test_the_files_are_those_that_the_metrics_make(
    families: list[MetricFamily],
) -> None:
    for name, text in documents(families).items():
        assert (FOLDER / name).read_text() == text, "python -m scripts.monitoring"


async def test_the_dashboard_has_every_metric_once(
    families: list[MetricFamily],
) -> None:
    shown = Counter(name for names in ROWS.values() for name in names)
    assert shown == Counter(each.name for each in families)


async def test_queries_and_rules_name_metrics_that_there_are(
    families: list[MetricFamily],
) -> None:
    queries = [rule.expression for rule in RULES] + [
        target["expr"]
        for panel in dashboard_of(families)["panels"]
        for target in panel.get("targets", ())
    ]
    named = set().union(*map(named_in, queries))
    assert len(named) > 40
    assert named <= series_of(families)


async def test_labels_that_rules_ask_for_have_such_values(
    families: list[MetricFamily],
) -> None:
    values = {
        (each.name, *label)
        for each in families
        for sample in each.samples
        for label in sample.labels.items()
    }
    asked = [
        (name, label, value)
        for rule in RULES
        for name, label, value in re.findall(
            r'(fanfare_\w+){(\w+)="(\w+)"}', rule.expression
        )
    ]
    assert asked
    assert set(asked) <= values


async def test_panels_do_not_overlap(families: list[MetricFamily]) -> None:
    cells = Counter(
        (place["x"] + x, place["y"] + y)
        for panel in dashboard_of(families)["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["w"])
        for y in range(place["h"])
    )
    assert set(cells.values()) == {1}


FAILING = """
rule_files: [RULES]
tests:
  - interval: 1m
    input_series:
      - {series: 'fanfare_feed_states{state="failing",instance="a"}', values: '60x90'}
      - {series: 'fanfare_feeds{instance="a"}', values: '100x90'}
      - {series: 'fanfare_feed_states{state="failing",instance="b"}', values: '40x90'}
      - {series: 'fanfare_feeds{instance="b"}', values: '100x90'}
      - {series: 'fanfare_backlog{stage="retrying",instance="a"}', values: '0+2x90'}
      - {series: 'fanfare_subscriptions{instance="a"}', values: '1000x90'}
    promql_expr_test:
      - expr: 'sort(sum by (alertname, instance) (ALERTS{alertstate="firing"}))'
        eval_time: 85m
        exp_samples:
          - {labels: '{alertname="FanfareFeedsFailing",instance="a"}', value: 1}
          - {labels: '{alertname="FanfareBacklogGrows",instance="a"}', value: 1}
"""


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_prometheus_reads_the_rules_and_two_of_them_fire(tmp_path: Path) -> None:
    scene = tmp_path / "failing.yml"
    scene.write_text(FAILING.replace("RULES", json.dumps(str(FOLDER / "alerts.yml"))))
    for command in (
        ("check", "rules", str(FOLDER / "alerts.yml")),
        ("test", "rules", str(scene)),
    ):
        checked = subprocess.run(
            ("promtool", *command),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
