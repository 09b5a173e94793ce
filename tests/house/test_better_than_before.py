# SPDX-License-Identifier: Apache-2.0
"""The page that says what is better than before says the truth: every test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.api import bad_requests

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "better-than-before.md"

ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| (D|L|A|R|Cost)\d* \|", line)
]
DEFECTS = [row for row in ROWS if len(row) == 4]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CASE = re.compile(r"`case: (.+?)`(?=<br>|$)")
GONE_FROM_NOVA = {
    "AggregateCoreFilter",
    "AggregateDiskFilter",
    "AggregateRamFilter",
    "AvailabilityZoneFilter",
    "CoreFilter",
    "DiskFilter",
    "ExactCoreFilter",
    "ExactDiskFilter",
    "ExactRamFilter",
    "RamFilter",
    "RetryFilter",
}


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests at the top of a module; a stateful test is one that is assigned."""
    found: set[str] = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name) and t.id.startswith("Test")}
    return frozenset(found)


@pytest.mark.parametrize("row", DEFECTS, ids=lambda row: f"{row[0]}: {row[1]}"[:60])
def test_a_defect_has_a_test_that_is_there(row):
    shown = row[3]
    tests, cases = TEST.findall(shown), CASE.findall(shown)
    assert len(tests) + len(cases) == len(shown.split("<br>")), "something is neither a test nor a case"
    for path, name in tests:
        assert (ROOT / path).is_file(), path
        assert name in names_in(path), f"{path} has no {name}"
    assert {case.replace("\\|", "|") for case in cases} <= {bad.name for bad in bad_requests.ALL}
    assert row[1]
    assert row[2]


def test_all_that_is_known_is_on_the_page():
    ids = {row[0] for row in DEFECTS}
    assert {f"D{number}" for number in range(27)} <= ids
    assert {f"L{number}" for number in range(1, 16)} <= ids
    assert {f"A{number}" for number in range(1, 16)} <= ids


def test_what_is_left_as_it_is_has_a_reason():
    left = [row for row in ROWS if len(row) == 3]
    assert left
    assert all(what and why for _, what, why in left)


def test_no_page_names_a_filter_that_nova_has_no_more():
    pages = [p for folder in ("docs", "deploy", "nova", "etc", "cloud") for p in (ROOT / folder).rglob("*")]
    lists = [
        line.partition("=")[2]
        for page in pages
        if page.suffix in (".md", ".conf", ".sample", ".yaml", ".in", "") and page.is_file()
        for line in page.read_text(encoding="utf-8", errors="ignore").splitlines()
        if line.strip().startswith("enabled_filters") and "Filter" in line
    ]
    named = [[name.strip() for name in text.split(",")] for text in lists]
    scheduler = [names for names in named if "ComputeFilter" in names]
    assert scheduler
    for names in scheduler:
        assert names[-1] == "BlazarFilter"
        assert not GONE_FROM_NOVA & set(names)
