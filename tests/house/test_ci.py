# SPDX-License-Identifier: Apache-2.0
"""CI runs every test: each night all, with each change all but what is marked as nightly."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKS = ("slow", "property", "cloud", "web", "nightly")
KINDS = [frozenset(some) for number in range(len(MARKS) + 1) for some in combinations(MARKS, number)]
"""All that a test can be marked as."""
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
PAGE = (ROOT / "docs" / "contributing" / "testing.md").read_text(encoding="utf-8")
MEANT = ("-m", "--ignore")
VALUED = (*MEANT, "-n", "-o", "-p", "--dist", "--timeout", "--durations")


@dataclass(frozen=True)
class Run:
    """A start of pytest."""

    places: tuple[str, ...]
    ignored: tuple[str, ...]
    chosen: str
    sizes: dict[str, int]

    def has(self, file: str, marks: frozenset[str]) -> bool:
        """Tell whether it runs a test of a file that has these marks."""
        if not any(lies_in(file, place) for place in self.places) or any(lies_in(file, one) for one in self.ignored):
            return False
        return chosen_by(self.chosen, marks)


@cache
def chosen_by(expression: str, marks: frozenset[str]) -> bool:
    return bool(eval(expression, {name: name in marks for name in MARKS}))


def lies_in(file: str, place: str) -> bool:
    return file == place or file.startswith(f"{place}/")


def run_of(command: str) -> Run:
    before, after = command.split(" -m pytest ", 1)
    sizes = {name: int(number) for name, number in re.findall(r"(BLAZAR_\w+)=\$\{\w+:-(\d+)\}", before)}
    words, meant, places = shlex.split(after), {name: [] for name in MEANT}, []
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name in VALUED:
            value = value or words.pop(0)
            if name in MEANT:
                meant[name].append(value)
        elif not word.startswith("-"):
            places.append(word)
    (chosen,) = meant["-m"] or ["True"]
    return Run(tuple(places) or ("tests",), tuple(meant["--ignore"]), chosen, sizes)


@cache
def runs(full: bool) -> tuple[Run, ...]:
    """All starts of pytest in .ci/run."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    variables = dict(re.findall(r"\b(tempest|lateness|memory)=(\"[^\"]+\"|\S+)", script))
    steps = [
        shlex.split(re.sub(r"\$(\w+)", lambda one: variables[one[1]].strip('"'), step))
        for step in re.findall(r"^ *step (.+?)(?: \|\| again.*)?$", script, re.M)
    ]
    # What this run of make was given is no part of it.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("BLAZAR_", "MAKE", "ARGS"))}
    environment |= {"FULL": "1"} if full else {}
    found: list[Run] = []
    for step in steps:
        done = subprocess.run(
            ["make", "-n", "-o", ".venv/bin/.dev", *step], cwd=ROOT, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        commands = re.sub(r"\\\n", " ", done.stdout).splitlines()
        # Those of the filter run a second time, with the libraries of the cloud.
        found += [run_of(one) for one in commands if " -m pytest " in one and "--confcutdir" not in one]
    assert len(found) >= 6
    return tuple(found)


def missed(full: bool) -> set[tuple[str, frozenset[str]]]:
    return {(file, marks) for file in FILES for marks in KINDS if not any(run.has(file, marks) for run in runs(full))}


def test_each_night_every_test_runs_whatever_it_is_marked_as():
    assert missed(full=True) == set()


def test_with_each_change_every_test_runs_but_those_of_the_night():
    left_out = missed(full=False)
    assert {marks for _, marks in left_out if "nightly" not in marks} == set()
    assert left_out


def test_the_night_is_what_each_change_runs_in_full_and_then_what_takes_long_or_is_random():
    lines = (ROOT / ".ci" / "nightly").read_text(encoding="utf-8").splitlines()
    commands = [line.strip().partition(" ||")[0] for line in lines if not line.startswith("#")]
    # Whatever fails is told at the end of the night, and keeps nothing else from running.
    assert all(line.endswith(" || failed=1") for line in map(str.strip, lines) if line.startswith((".ci", "make")))
    assert "export CI=true FULL=1" in commands
    assert [one for one in commands if one.startswith((".ci", "make"))] == [
        ".ci/run",
        'make test-web AT="$(date -ud "$((RANDOM % 10080)) minutes" "+%F %H:%M")"',
        "make soak MINUTES=15",
        "make test-options",
        "make bench",
        'make bench-beside COMMIT="$before" ARGS="--hosts 1000 --leases 10000 --kinds physical:host,virtual:instance"',
        'make bench ARGS="--only pages"',
    ]


def test_no_number_of_cases_is_smaller_each_night():
    few, many = ([run.sizes for run in runs(full) if run.sizes] for full in (False, True))
    assert few
    for each, full in zip(few, many, strict=True):
        assert each.keys() == full.keys()
        # Of the points of a walk every so-manieth is taken.
        assert each.pop("BLAZAR_FENCE_EVERY") > full.pop("BLAZAR_FENCE_EVERY") == 1
        assert all(each[name] < full[name] for name in each)


def test_the_walks_that_the_page_times_are_there():
    table = PAGE.partition("## Walks")[2].partition("\n## ")[0]
    walks = re.findall(r"^\| `(?:make )?([\w/.-]+)` \|", table, re.M)
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(walks) == 10
    assert [one for one in walks if one not in FILES and f"\n{one}: " not in targets] == []


@pytest.mark.parametrize("what", ["mark", "size"])
def test_the_page_names_all_that_only_the_night_runs(what):
    if what == "size":
        assert {name for run in runs(False) for name in run.sizes} <= set(re.findall(r"`(BLAZAR_\w+)`", PAGE))
        return
    nightly = re.compile(r"mark\.(nightly|share)\b")
    marked = {file for file in FILES if nightly.search((ROOT / file).read_text(encoding="utf-8"))}
    # The marks of a fixture are those of its tests.
    marked = {file for file in marked if not file.startswith("tests/house/")}
    table = PAGE.partition("## What only the night runs")[2]
    assert marked == set(re.findall(r"^\| `(tests/[\w/.]+)`", table, re.M)) - {"tests/cloud/conftest.py"}


def test_what_failed_is_chosen_once_more_by_its_name_only():
    """Where only what failed is collected, each is the first of its sample, and so would not be slow any more."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    again = [line for line in lines if "--last-failed" in line]
    assert again
    assert all("-m ''" in line for line in again)
