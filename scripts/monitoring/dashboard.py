"""Grafana's dashboard: a panel for each metric, drawn as its kind asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from protocols.prometheus import MetricFamily, MetricKind

ROWS: Final[Mapping[str, Sequence[str]]] = {
    "How fresh entries are": (
        "fanfare_publication_to_commit_seconds",
        "fanfare_commit_to_delivery_seconds",
        "fanfare_entries_total",
        "fanfare_deliveries_total",
    ),
    "What waits": (
        "fanfare_backlog",
        "fanfare_delivery_lag_seconds",
        "fanfare_live_lag_seconds",
        "fanfare_oldest_due_feed_seconds",
    ),
    "Feeds": (
        "fanfare_feed_states",
        "fanfare_feeds",
        "fanfare_polls_total",
        "fanfare_slow_polls",
        "fanfare_documents_total",
        "fanfare_upstream_total",
        "fanfare_tracking_total",
        "fanfare_track_queries",
    ),
    "Deliveries": (
        "fanfare_subscription_states",
        "fanfare_subscriptions",
        "fanfare_delivery_seconds",
        "fanfare_deliveries_ended_total",
        "fanfare_split_total",
        "fanfare_acknowledgement_seconds",
    ),
    "Live streams": (
        "fanfare_connections",
        "fanfare_live_messages_total",
        "fanfare_live_reads_total",
        "fanfare_live_resuming",
    ),
    "Requests to the hub": (
        "fanfare_http_requests_total",
        "fanfare_http_request_seconds",
        "fanfare_requests_limited_total",
        "fanfare_watched_pages",
    ),
    "Database and disk": (
        "fanfare_commit_seconds",
        "fanfare_log_head",
        "fanfare_database_bytes",
        "fanfare_disk_bytes",
        "fanfare_disk_free_bytes",
        "fanfare_disk_limit_bytes",
        "fanfare_disk_growth_bytes",
        "fanfare_disk_limit_seconds",
        "fanfare_disk_full_seconds",
        "fanfare_collections_total",
        "fanfare_backups_total",
        "fanfare_backup_timestamp_seconds",
        "fanfare_backup_bytes",
    ),
    "Process": (
        "fanfare_info",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
    ),
}
"""Every metric once, in the order in which one looks."""

SELECTOR: Final = '{job=~"$job",instance=~"$instance"}'
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 24
HEADER_HEIGHT: Final = 1
QUANTILES: Final = (0.5, 0.99)


def dashboard_of(families: Sequence[MetricFamily]) -> dict[str, Any]:
    """The document that Grafana (10 and later) imports.

    Raises `KeyError` for a metric of `ROWS` that the hub does not have.
    """
    known = {each.name: each for each in families}
    return {
        "uid": "fanfare",
        "title": "Fanfare",
        "tags": ["fanfare"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": list(_variables())},
        "panels": list(_panels(known)),
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "source", "label": "Source", "type": "datasource"} | {
        "query": "prometheus"
    }
    for name, of in (
        ("job", "fanfare_info"),
        ("instance", 'fanfare_info{job=~"$job"}'),
    ):
        yield {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values({of}, {name})",
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        }


def _panels(known: Mapping[str, MetricFamily]) -> Iterator[dict[str, Any]]:
    top, number = 0, 0
    for title, names in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": COLUMNS, "h": HEADER_HEIGHT}
        yield {"id": number, "type": "row", "title": title, "gridPos": place}
        top += HEADER_HEIGHT
        for index, name in enumerate(names):
            number += 1
            line, column = divmod(index, COLUMNS // WIDTH)
            place = {
                "x": column * WIDTH,
                "y": top + line * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            yield {"id": number, "gridPos": place} | _panel(known[name])
        top += HEIGHT * -(-len(names) // (COLUMNS // WIDTH))


def _panel(family: MetricFamily) -> dict[str, Any]:
    title = family.name.removeprefix("fanfare_").replace("_", " ")
    targets = [
        {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend}
        for number, (query, legend) in enumerate(_queries(family))
    ]
    return {
        "type": "timeseries",
        "title": title.removesuffix(" total").capitalize(),
        "description": family.help,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": _unit(family)}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
    }


def _queries(family: MetricFamily) -> Iterator[tuple[str, str]]:
    """Each a query, and how Grafana names its lines."""
    labels = [
        name for name in family.samples[0].labels if name not in ("le", "version")
    ]
    legend = " ".join(f"{{{{{name}}}}}" for name in labels)
    match family.kind:
        case MetricKind.COUNTER:
            rate = f"rate({family.name}{SELECTOR}[$__rate_interval])"
            yield _summed(rate, labels), legend or "a second"
        case MetricKind.GAUGE:
            yield f"{family.name}{SELECTOR}", legend or "{{instance}}"
        case MetricKind.HISTOGRAM:
            rate = f"rate({family.name}_bucket{SELECTOR}[$__rate_interval])"
            for quantile in QUANTILES:
                query = _summed(rate, ["le", *labels])
                name = f"{quantile * 100:g} % within"
                yield (
                    f"histogram_quantile({quantile:g}, {query})",
                    f"{legend} {name}".strip(),
                )


def _summed(query: str, labels: Sequence[str]) -> str:
    return f"sum by ({', '.join(labels)}) ({query})" if labels else f"sum({query})"


def _unit(family: MetricFamily) -> str:
    """As Grafana names units."""
    name = family.name.removesuffix("_total")
    if name.endswith("_timestamp_seconds") or name.endswith("start_time_seconds"):
        return "dateTimeFromNow"
    if name.endswith("_seconds") and family.kind is not MetricKind.COUNTER:
        return "s"
    if name.endswith("_bytes"):
        return "bytes"
    return "short"
