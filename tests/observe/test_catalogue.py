# SPDX-License-Identifier: Apache-2.0
"""The catalogue of metrics: its names and labels, and that nothing odd becomes a series."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from blazar.api.http.faults import CODES
from blazar.observe import metrics
from blazar.observe.families import OTHER, REGISTRY, Count, Label, Level, Spread
from blazar.rpc import codec

ROOT = Path(__file__).parents[2]
SECRETIVE = {
    "project",
    "project_id",
    "user",
    "user_id",
    "lease",
    "lease_id",
    "host",
    "name",
    "path",
    "request_id",
    "ip",
}


def test_the_page_of_metrics_is_up_to_date():
    done = subprocess.run([sys.executable, "tools/metrics_page.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == (ROOT / "docs/metrics.md").read_text("utf-8"), "run make sample-config"


@pytest.mark.parametrize("family", metrics.CATALOGUE, ids=lambda family: family.name)
def test_a_family_is_named_as_prometheus_wants_it_and_tells_nobody_whose_leases_there_are(family):
    assert re.fullmatch(r"blazar_[a-z]+(_[a-z]+)*", family.name)
    assert family.name.endswith("_total") is (family.kind == "counter")
    assert family.kind != "histogram" or family.name.endswith("_seconds")
    assert family.help.endswith(".")
    assert not SECRETIVE & set(family.label_names)
    for label in family.labels:
        assert bool(label.values) != bool(label.most), f"{label.name} is a list or names of something"
        assert bool(label.source) is bool(label.most)
        assert label.most <= 400


def test_no_name_is_used_twice():
    names = [family.name for family in metrics.CATALOGUE]
    assert len(names) == len(set(names)) > 40


def test_what_is_not_allowed_counts_as_other():
    label = Label("what", ("this", "that"))
    assert [label.admit(value) for value in ("this", "that", "'; DROP TABLE", "")] == ["this", "that", OTHER, OTHER]


def test_of_names_the_first_few_are_allowed():
    label = Label("what", most=2, source="names", form=re.compile("[a-z]+"))
    assert [label.admit(value) for value in ("Ä", "a", "b", "c", "a")] == [OTHER, "a", "b", OTHER, "a"]


def test_a_method_that_nobody_knows_does_not_become_a_series():
    for number in range(50):
        metrics.HTTP_REQUESTS.add(f"BREW{number}", f"/v1/made/up/{number}?x=%00", "999")
    seen = samples("blazar_http_requests_total")
    assert not any("BREW" in str(labels) for labels in seen)
    assert any(labels["method"] == labels["route"] == labels["code"] == OTHER for labels in seen)


def test_no_series_has_a_value_that_its_label_does_not_allow():
    families = {family.name: family for family in metrics.CATALOGUE}
    for found in REGISTRY.collect():
        for sample in found.samples:
            family = families.get(found.name, families.get(f"{found.name}_total"))
            if family is None:
                assert found.name.startswith(("process_", "python_"))
                continue
            for label in family.labels:
                assert label.allows(sample.labels[label.name]), sample


def test_codes_of_errors_and_calls_have_room():
    by_name = {label.name: label for family in (metrics.REFUSALS, metrics.RPC_REQUESTS) for label in family.labels}
    for label, values in ((by_name["code"], CODES), (by_name["call"], codec.CALLS)):
        assert len(values) < label.most
        assert all(label.form.fullmatch(value) for value in values)


def test_a_scrape_has_no_times_of_creation():
    metrics.LOG_MESSAGES.add("WARNING")
    text = generate_latest(REGISTRY).decode()
    assert "# TYPE blazar_log_messages_total counter" in text
    assert "_created" not in text


def test_a_duration_of_a_clock_that_was_set_is_nothing():
    family = next(family for family in metrics.CATALOGUE if family is metrics.QUEUE_PLAN_DURATION)
    assert isinstance(family, Spread)
    before = REGISTRY.get_sample_value(f"{family.name}_sum")
    family.note(-5)
    assert REGISTRY.get_sample_value(f"{family.name}_sum") == before


def test_counters_and_levels_are_fed_by_name():
    assert isinstance(metrics.LOG_MESSAGES, Count)
    assert isinstance(metrics.CLOCK_OFFSET, Level)
    metrics.CLOCK_OFFSET.set(0.25)
    assert REGISTRY.get_sample_value(metrics.CLOCK_OFFSET.name) == 0.25
    metrics.THREAD_LAST_ROUND.set_to_now("engine")
    assert (REGISTRY.get_sample_value(metrics.THREAD_LAST_ROUND.name, {"thread": "engine"}) or 0) > 1.7e9


def samples(name):
    return [sample.labels for found in REGISTRY.collect() for sample in found.samples if sample.name == name]
