# SPDX-License-Identifier: Apache-2.0
"""What operators copy to watch the service: rules, dashboard and their page name declared families only, and work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from blazar.observe.metrics import CATALOGUE
from tests.conftest import missing

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
PAGE = (ROOT / "docs" / "alerts.md").read_text("utf-8")
RULES = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"] for rule in group["rules"]
]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PANEL_QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
QUERIES = [(rule["alert"], rule["expr"]) for rule in RULES] + PANEL_QUERIES

OF_PROMETHEUS = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total"}
OF_TARGETS = {"job", "instance"}
GROUPING = {"by", "without", "on", "ignoring"}
OPERATORS = {"and", "or", "unless"}
QUERIES_ONLY: set[str] = set()
"""Families that are on no panel and in no rule."""

FAMILIES = {family.name: family for family in CATALOGUE}
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\d.]+(?:e[+-]?\d+)?[a-z]*|[A-Za-z_:$][\w:]*|=~|!~|!=|[<>=]=|.)', re.S)


@dataclass
class Query:
    """What a query names: families with the labels that select of them, and the labels that it groups by."""

    families: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)


def read(expression: str) -> Query:
    """Return what an expression of PromQL names."""
    tokens, found = TOKEN.findall(expression.strip()), Query()
    while tokens:
        token = tokens.pop(0)
        following = tokens[0] if tokens else ""
        if token in GROUPING:
            found.groups |= set(_within(tokens, ")")) - {"(", ","}
        elif token == "[":
            _within(tokens, "]")
        elif re.match(r"[A-Za-z_:]", token) and following != "(" and token not in OPERATORS:
            if tokens and following in GROUPING:
                continue
            inside = [one for one in _within(tokens, "}")[1:] if one != ","] if following == "{" else []
            found.families.append((token, list(zip(inside[::3], inside[1::3], inside[2::3], strict=True))))
    return found


def _within(tokens: list[str], end: str) -> list[str]:
    """Take tokens up to an end; return those before it."""
    index = tokens.index(end)
    taken = tokens[:index]
    del tokens[: index + 1]
    return taken


def family_of(name: str):
    return FAMILIES.get(name) or FAMILIES.get(name.removesuffix("_bucket"))


def wrong(expression: str) -> Iterator[str]:
    """Yield what an expression names that is not declared."""
    query = read(expression)
    assert query.families, expression
    for name, selected in query.families:
        family = family_of(name)
        if family is None:
            if name not in OF_PROMETHEUS:
                yield name
            continue
        labels = {label.name: label for label in family.labels}
        if (family.kind == "histogram") is not name.endswith("_bucket"):
            yield f"{name} is a {family.kind}"
        yield from (f"{one} of {name}" for one in query.groups - labels.keys() - OF_TARGETS - {"le"})
        for label, operator, quoted in selected:
            value = quoted[1:-1]
            if label not in labels.keys() | OF_TARGETS:
                yield f"{label} of {name}"
            elif label in labels and labels[label].values and not value.startswith("$"):
                wanted = value.split("|") if operator in ("=~", "!~") else [value]
                yield from (f"{label}={one} of {name}" for one in wanted if not labels[label].allows(one))


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        missing(name, "it is not installed (Debian's package prometheus has it)")
    assert path is not None
    return path


def run(name: str, *arguments: str, folder: Path = FOLDER) -> None:
    done = subprocess.run([program(name), *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "expression"), QUERIES, ids=[name for name, _ in QUERIES])
def test_a_query_names_only_what_is_declared(name, expression):
    assert list(wrong(expression)) == []


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("blazar_leeses", "blazar_leeses"),
        ('sum by (project) (rate(blazar_claims_total{outcome="taken"}[5m]))', "project of blazar_claims_total"),
        ('blazar_claims_total{outcom="taken"}', "outcom of blazar_claims_total"),
        ('blazar_claims_total{outcome=~"taken|stolen"}', "outcome=stolen of blazar_claims_total"),
        ("rate(blazar_wait_seconds[5m])", "blazar_wait_seconds is a histogram"),
        ("blazar_leases > 5 unless max(blazar_nothing) offset 5m", "blazar_nothing"),
    ],
)
def test_what_is_not_declared_is_found(expression, what):
    assert what in list(wrong(expression))


def test_every_family_is_looked_at():
    seen = {name.removesuffix("_bucket") for _, expression in QUERIES for name, _ in read(expression).families}
    assert FAMILIES.keys() - seen == QUERIES_ONLY


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_is_and_leads_to_what_to_do(rule):
    notes = rule["annotations"]
    assert notes.keys() == {"summary", "description", "runbook_url"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert notes["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
    query = read(rule["expr"])
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(notes.values())))
    assert named <= (query.groups or {"job", "instance"})


def test_the_page_has_all_alerts_with_their_severity_and_no_other():
    sections = dict(re.findall(r"^## (Blazar\w+)\n\n\*(\w+)\.\*", PAGE, re.M))
    assert sections == {rule["alert"]: rule["labels"]["severity"] for rule in RULES}
    assert set(re.findall(r"\bBlazar[A-Z]\w+", PAGE)) == sections.keys()
    assert {f"#{name.lower()}" for name in sections} >= set(re.findall(r"\]\((#blazar\w+)\)", PAGE))


def test_every_alert_is_tried():
    tests = yaml.safe_load((FOLDER / "alerts_test.yaml").read_text("utf-8"))["tests"]
    for rule in RULES:
        (tried,) = (one for one in tests if one["name"].startswith(f"{rule['alert']}: "))
        alerts = [bool(one["exp_alerts"]) for one in tried["alert_rule_test"]]
        # Not without its fault, then within the fault, then no more.
        assert (alerts[0], any(alerts), alerts[-1]) == (False, True, False)


def test_prometheus_takes_the_rules():
    run("promtool", "check", "rules", "alerts.yaml")
    run("promtool", "check", "config", "prometheus.yml")


@pytest.mark.slow
def test_the_rules_fire_in_time_and_not_without_a_fault():
    run("promtool", "test", "rules", "alerts_test.yaml")


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path):
    rules = [
        {"record": f"query:{number}", "expr": expression.replace("$__rate_interval", "5m").replace("$region", ".*")}
        for number, (_, expression) in enumerate(PANEL_QUERIES)
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    run("promtool", "check", "rules", "rules.yaml", folder=tmp_path)


def test_the_dashboard_is_up_to_date():
    made = subprocess.run([sys.executable, "tools/dashboard.py"], cwd=ROOT, capture_output=True, text=True)
    assert made.stdout == (FOLDER / "dashboard.json").read_text("utf-8"), "run make dashboard"


def test_the_panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) > 50
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_the_legend_of_a_panel_names_labels_of_its_query(panel):
    for target in panel["targets"]:
        query = read(target["expr"])
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= (query.groups or OF_TARGETS)
