# SPDX-License-Identifier: Apache-2.0
"""Write ``deploy/monitoring/dashboard.json``, a dashboard for Grafana: ``make dashboard``.

The model is the classic one, which Grafana imports from 8.3 on, the first that names a source by type and uid. What all
managers read in the database is the same in each of them, and shown by max; what a process counts is summed up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

WIDTH, HEIGHT, COLUMNS = 8, 7, 3
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """A graph: its title, the unit of its axis, and its queries with the legend of each."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    note: str = ""


def panel(title: str, unit: str, *queries: tuple[str, str], note: str = "") -> Panel:
    """Return a graph of some queries."""
    return Panel(title, unit, queries, note)


def rates(family: str, *labels: str, where: str = "") -> tuple[str, str]:
    """Return the query of how often something happens, by labels."""
    return f"sum by ({', '.join(labels)}) (rate({family}{where}[$__rate_interval]))", legend(labels)


def quantile(share: float, family: str, *labels: str, where: str = "") -> tuple[str, str]:
    """Return the query of a quantile of a histogram, by labels."""
    by = ", ".join(("le", *labels))
    said = f"{100 * share:g} % {legend(labels)}".strip()
    return f"histogram_quantile({share}, sum by ({by}) (rate({family}_bucket{where}[$__rate_interval])))", said


def quantiles(family: str) -> list[tuple[str, str]]:
    """Return the queries of the median of a histogram, and of what few and very few exceed."""
    return [quantile(share, family) for share in (0.5, 0.95, 0.99)]


def most(family: str, *labels: str, where: str = "") -> tuple[str, str]:
    """Return the query of what all managers tell alike, by labels."""
    return f"max by ({', '.join(labels)}) ({family}{where})" if labels else f"max({family})", legend(labels)


def age(family: str, *labels: str) -> tuple[str, str]:
    """Return the query of the time since an instant, by labels."""
    return f"time() - max by ({', '.join(labels)}) ({family})", legend(labels)


def legend(labels: Sequence[str]) -> str:
    """Return the legend of a query that has these labels."""
    return " ".join(f"{{{{{label}}}}}" for label in labels)


REGION = '{region=~"$region"}'

ROWS: dict[str, tuple[Panel, ...]] = {
    "What users see": (
        panel("Requests", "reqps", rates("blazar_http_requests_total", "code")),
        panel("Time of a request", "s", *quantiles("blazar_http_request_duration_seconds")),
        panel(
            "Share of requests that fail",
            "percentunit",
            (
                # Without a failure since the start there is no series of it.
                '(sum(rate(blazar_http_requests_total{code=~"5.."}[$__rate_interval])) or vector(0))'
                " / sum(rate(blazar_http_requests_total[$__rate_interval]))",
                "5xx",
            ),
        ),
        panel("Why requests are refused", "reqps", rates("blazar_refusals_total", "code")),
        panel("Slowest routes", "s", quantile(0.95, "blazar_http_request_duration_seconds", "route")),
        panel(
            "Requests in progress, tokens",
            "short",
            ("sum(blazar_http_requests_in_progress)", "in progress"),
            rates("blazar_token_validations_total", "outcome"),
        ),
    ),
    "Events": (
        panel("Due events", "short", most("blazar_due_events", "event")),
        panel("The longest that one waits for a manager", "s", most("blazar_oldest_due_event_age_seconds", "event")),
        panel("Begun after its time, 95 %", "s", quantile(0.95, "blazar_event_lateness_seconds", "event")),
        panel("Finished after its time, 95 %", "s", quantile(0.95, "blazar_event_completion_seconds", "event")),
        panel("Attempts", "ops", rates("blazar_event_attempts_total", "event", "outcome")),
        panel("Attempts long after the time", "ops", rates("blazar_overdue_attempts_total", "event")),
        panel(
            "Claims",
            "short",
            rates("blazar_claims_total", "outcome"),
            ("sum by (instance) (blazar_claims_held)", "{{instance}}"),
        ),
    ),
    "Bookings": (
        panel("Bookings", "ops", rates("blazar_bookings_total", "kind", "outcome")),
        panel("Time of a booking", "s", *quantiles("blazar_booking_duration_seconds")),
        panel("Bookings that are tried again", "ops", rates("blazar_booking_retries_total", "cause")),
        panel(
            "Searches for hosts that others leave",
            "ops",
            rates("blazar_repackings_total", "outcome"),
            ("sum (rate(blazar_repacked_leases_total[$__rate_interval]))", "leases that got others"),
        ),
        panel("Time of such a search", "s", *quantiles("blazar_repack_duration_seconds")),
        panel("Leases", "short", most("blazar_leases", "lease_kind", "status")),
        panel("Checks by filters", "ops", rates("blazar_enforcement_requests_total", "filter", "call", "outcome")),
        panel("Time of a check, 95 %", "s", quantile(0.95, "blazar_enforcement_request_duration_seconds", "filter")),
    ),
    "The waiting list": (
        panel("Leases that wait", "short", most("blazar_waiting_leases", "resource_type")),
        panel("The longest wait", "s", most("blazar_waiting_oldest_age_seconds", "resource_type")),
        panel("How long was waited", "s", quantile(0.5, "blazar_wait_seconds", "outcome")),
        panel("Promises", "ops", rates("blazar_promises_total", "change"), note="broken should stay at 0"),
        panel("Time of a plan", "s", *quantiles("blazar_queue_plan_duration_seconds")),
    ),
    "Capacity": (
        panel("Resources", "short", most("blazar_resources", "kind", "region", "state", where=REGION)),
        panel(
            "Share that is allocated",
            "percentunit",
            (
                f"max by (kind, region, resource_class) (blazar_capacity_allocated{REGION})"
                f" / max by (kind, region, resource_class) (blazar_capacity{REGION})",
                legend(("kind", "region", "resource_class")),
            ),
        ),
        panel(
            "Resources by property",
            "short",
            most("blazar_resources_by_property", "kind", "property", "value", "state"),
            note="with [monitoring] properties",
        ),
    ),
    "The cloud": (
        panel("Calls", "reqps", rates("blazar_cloud_requests_total", "service", "region", "outcome", where=REGION)),
        panel("Time of a call, 95 %", "s", quantile(0.95, "blazar_cloud_request_duration_seconds", "service")),
        panel(
            "Services that are asked rarely",
            "short",
            most("blazar_cloud_breaker_open", "service", "region", where=REGION),
            note="1: the last calls were not answered",
        ),
        panel("Findings of the sweep", "short", most("blazar_sweep_findings", "region", "what", where=REGION)),
        panel("Reservations that differ", "short", most("blazar_drift_findings", "region", where=REGION)),
        panel("Reservations mended", "ops", rates("blazar_drift_mends_total", "outcome")),
        panel(
            "Since the last look",
            "s",
            age("blazar_poll_last_success_timestamp_seconds", "kind", "region"),
            age("blazar_sweep_last_success_timestamp_seconds", "region"),
            age("blazar_drift_last_success_timestamp_seconds", "region"),
        ),
        panel("Power of hosts and pools", "short", most("blazar_power_resources", "kind", "state"), note="off: asleep"),
        panel("Hosts switched", "ops", rates("blazar_power_moves_total", "state", "reason")),
        panel("Time of a wake", "s", *quantiles("blazar_wake_duration_seconds")),
        panel("Sources of energy read", "ops", rates("blazar_energy_reads_total", "source", "outcome")),
        panel("Healings", "ops", rates("blazar_healings_total", "outcome")),
    ),
    "Database and message bus": (
        panel("Transactions", "ops", rates("blazar_db_transactions_total", "kind", "outcome")),
        panel("Time of a transaction, 95 %", "s", quantile(0.95, "blazar_db_transaction_duration_seconds", "kind")),
        panel("Connections", "short", ("sum by (instance, state) (blazar_db_connections)", "{{instance}} {{state}}")),
        panel("Calls of APIs", "reqps", rates("blazar_rpc_client_calls_total", "outcome")),
        panel("Time of a call", "s", *quantiles("blazar_rpc_client_call_duration_seconds")),
        panel("Calls at managers", "reqps", rates("blazar_rpc_requests_total", "call", "outcome")),
        panel("Time of a call at managers", "s", *quantiles("blazar_rpc_request_duration_seconds")),
        panel(
            "Threads that work",
            "percentunit",
            (
                'sum by (instance, pool) (blazar_worker_threads{state="busy"})'
                " / sum by (instance, pool) (blazar_worker_threads)",
                "{{instance}} {{pool}}",
            ),
        ),
    ),
    "Messages": (
        panel("Messages that wait or were given up", "short", most("blazar_outbox_messages", "channel", "state")),
        panel("The oldest of them", "s", most("blazar_outbox_oldest_age_seconds", "channel")),
        panel("Entries without a position", "short", ("max(blazar_journal_unnumbered)", "entries")),
        panel("Deliveries", "ops", rates("blazar_deliveries_total", "channel", "outcome")),
    ),
    "Processes": (
        panel("Processes that answer", "short", ('up{job=~"blazar-.+"}', "{{job}} {{instance}}")),
        panel(
            "Warnings and errors in the log",
            "ops",
            rates("blazar_log_messages_total", "instance", "level"),
            ("sum by (instance) (rate(blazar_log_failures_total[$__rate_interval]))", "{{instance}} not written"),
        ),
        panel(
            "Since the last round of a thread",
            "s",
            age("blazar_thread_last_round_timestamp_seconds", "instance", "thread"),
        ),
        panel("Rounds of threads", "ops", rates("blazar_thread_rounds_total", "thread", "outcome")),
        panel("Clocks off by", "s", ('blazar_clock_offset_seconds{job="blazar-manager"}', "{{instance}}")),
        panel("Age of the sample", "s", ("time() - max(blazar_sample_timestamp_seconds)", "")),
        panel(
            "Versions", "short", ("count by (version, rpc_version) (blazar_build_info)", "{{version}} {{rpc_version}}")
        ),
        panel("Memory", "bytes", ('process_resident_memory_bytes{job=~"blazar-.+"}', "{{job}} {{instance}}")),
        panel(
            "CPU",
            "percentunit",
            ('rate(process_cpu_seconds_total{job=~"blazar-.+"}[$__rate_interval])', "{{job}} {{instance}}"),
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "title": "Blazar",
        "uid": "blazar",
        "tags": ["openstack", "blazar"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": variables()},
        "panels": list(panels()),
    }


def variables() -> list[dict[str, Any]]:
    """Return what a reader chooses above the panels: the Prometheus, and regions."""
    region = "label_values(blazar_resources, region)"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "region",
            "label": "Region",
            "type": "query",
            "datasource": SOURCE,
            "definition": region,
            "query": {"query": region, "refId": "region"},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def panels() -> Iterator[dict[str, Any]]:
    """Yield rows, each followed by its graphs, three beside each other."""
    ids, top = count(1), 0
    for title, graphs in ROWS.items():
        place = {"x": 0, "y": top, "w": WIDTH * COLUMNS, "h": 1}
        yield {"id": next(ids), "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        for index, graph in enumerate(graphs):
            row, column = divmod(index, COLUMNS)
            place = {"x": column * WIDTH, "y": top + 1 + row * HEIGHT, "w": WIDTH, "h": HEIGHT}
            yield {"id": next(ids), "gridPos": place, **describe(graph)}
        top += 1 + HEIGHT * -(-len(graphs) // COLUMNS)


def describe(graph: Panel) -> dict[str, Any]:
    """Return a graph as Grafana has it, without its place."""
    return {
        "type": "timeseries",
        "title": graph.title,
        "description": graph.note,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": graph.unit}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": said}
            for index, (expression, said) in enumerate(graph.queries)
        ],
    }


def text() -> str:
    """Return the content of the file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
