"""Alert rules for Prometheus: what an operator should be woken for, or look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AlertRule:
    """``expression`` must hold for ``wait`` before it is told; ``page``: somebody
    should be woken. ``advice``: what to do, in a sentence."""

    name: str
    expression: str
    wait: str
    summary: str
    advice: str
    page: bool = False


RULES: Final[Sequence[AlertRule]] = (
    AlertRule(
        "FanfareDown",
        'up{job="fanfare"} == 0',
        "2m",
        "The hub does not answer",
        "Look at its log, and at /readyz.",
        page=True,
    ),
    AlertRule(
        "FanfareDeliveriesLate",
        "fanfare_delivery_lag_seconds > 60",
        "5m",
        "Entries wait for their first delivery for over a minute",
        "Raise FANFARE_DELIVERY_CONCURRENCY, or give the hub more CPU.",
        page=True,
    ),
    AlertRule(
        "FanfareLiveStreamsLate",
        "fanfare_live_lag_seconds > 10",
        "5m",
        "Live streams are over ten seconds behind the log",
        "Give the hub more CPU, or allow fewer live connections.",
    ),
    AlertRule(
        "FanfarePollsLate",
        "fanfare_oldest_due_feed_seconds > 600",
        "10m",
        "A feed has been due for over ten minutes",
        "Raise FANFARE_POLL_CONCURRENCY, or give the hub more CPU.",
    ),
    AlertRule(
        "FanfareBacklogGrows",
        '(delta(fanfare_backlog{stage="retrying"}[1h]) > 10)'
        " > ignoring (stage) 0.05 * fanfare_subscriptions",
        "15m",
        "More and more subscriptions do not answer",
        "`fanfare deliveries list --failed` shows what callbacks answer; the network of"
        " the hub may be down.",
    ),
    AlertRule(
        "FanfareFeedsFailing",
        '(fanfare_feed_states{state="failing"} > 10)'
        " > ignoring (state) 0.5 * fanfare_feeds",
        "15m",
        "More than half of the feeds are failing",
        "The network or the name servers of the hub may be down; `fanfare feeds list"
        " --failing` shows the errors.",
        page=True,
    ),
    AlertRule(
        "FanfareDiskFullSoon",
        "fanfare_disk_full_seconds < 3 * 86400",
        "1h",
        "At this rate the disk is full within three days",
        "Free space, or lower FANFARE_LOG_RETENTION_BYTES.",
    ),
    AlertRule(
        "FanfareDiskFull",
        "fanfare_disk_free_bytes < 256 * 1024 * 1024",
        "1m",
        "The disk of the database has less than 256 MiB left",
        "Free space now: the hub stops accepting when it cannot write.",
        page=True,
    ),
    AlertRule(
        "FanfareWriteAheadLogGrows",
        'fanfare_database_bytes{file="wal"} > 256 * 1024 * 1024',
        "10m",
        "The write-ahead log of the database is over 256 MiB",
        "Another program reads the database for long: a copy, or a shell.",
    ),
    AlertRule(
        "FanfareCommitsSlow",
        "histogram_quantile(0.99, sum by (le, instance)"
        " (rate(fanfare_commit_seconds_bucket[10m]))) > 1",
        "15m",
        "One commit in a hundred takes over a second",
        "The disk is slow or busy.",
    ),
    AlertRule(
        "FanfareBackupMissing",
        "time() - fanfare_backup_timestamp_seconds > 2 * 86400"
        " and fanfare_backup_timestamp_seconds > 0",
        "1h",
        "The last good backup is over two days old",
        "The log of the hub names the reason (backup_failed).",
    ),
    AlertRule(
        "FanfareDeliveriesGivenUp",
        'increase(fanfare_deliveries_ended_total{reason="given_up"}[1h]) > 0',
        "1m",
        "Deliveries were given up",
        "`fanfare deliveries list` shows the dead letters; send them again once the"
        " callback works.",
    ),
    AlertRule(
        "FanfareErrors",
        'sum by (instance) (rate(fanfare_http_requests_total{answer="5xx"}[10m]))'
        " > 0.1",
        "10m",
        "The hub answers requests with errors of its own",
        "Its log has the reasons; 503 means that the database cannot be used.",
    ),
    AlertRule(
        "FanfareFilesExhausted",
        "process_open_fds > 0.9 * process_max_fds",
        "5m",
        "Nine tenths of the files that may be open are open",
        "Raise the limit of open files (LimitNOFILE).",
    ),
)


def rules_document() -> str:
    """The rule file, in YAML."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Made by: .venv/bin/python -m scripts.monitoring"
    yield "groups:"
    yield "  - name: fanfare"
    yield "    rules:"
    for rule in RULES:
        yield f"      - alert: {rule.name}"
        yield f"        expr: {_quoted(rule.expression)}"
        yield f"        for: {rule.wait}"
        yield "        labels:"
        yield f"          severity: {'critical' if rule.page else 'warning'}"
        yield "        annotations:"
        summary = rule.summary + " ({{ $labels.instance }})"
        yield f"          summary: {_quoted(summary)}"
        yield f"          description: {_quoted(rule.advice)}"


def _quoted(text: str) -> str:
    """A double-quoted scalar of YAML is written as a string of JSON."""
    return json.dumps(text)
