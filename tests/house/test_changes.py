# SPDX-License-Identifier: Apache-2.0
"""The changelog of the next release can be built: every file in ``changes/`` has a known type and is rendered."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
HEADINGS = {kind["directory"]: kind["name"] for kind in TOWNCRIER["type"]}
CHANGES = sorted(path for path in (ROOT / TOWNCRIER["directory"]).iterdir() if path != ROOT / TOWNCRIER["template"])


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """Return what stands below each heading of the next release."""
    command = [Path(sys.executable).with_name("towncrier"), "build", "--draft", "--version", "next", "--dir", ROOT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    title, *parts = re.split(r"^### ", done.stdout, flags=re.M)
    assert title.startswith("## next (")
    return {heading: text for heading, _, text in (part.partition("\n") for part in parts)}


def test_a_change_is_named_by_its_subject_and_a_known_type():
    name = re.compile(rf"[a-z][a-z-]*\.({'|'.join(HEADINGS)})\.md")
    assert [change.name for change in CHANGES if not name.fullmatch(change.name)] == []


@pytest.mark.slow
def test_a_change_is_one_entry_below_the_heading_of_its_type(sections):
    for change in CHANGES:
        entry = "* " + change.read_text(encoding="utf-8").strip().replace("\n", "\n  ") + "\n"
        assert "\n  * " not in entry, change.name
        assert len(entry) > 20, change.name
        assert entry in sections[HEADINGS[change.name.split(".")[-2]]], change.name


def test_the_release_has_no_entry_without_a_change(sections):
    entries = [line for text in sections.values() for line in text.splitlines() if line.startswith("* ")]
    assert len(entries) == len(CHANGES)


def test_links_of_a_change_lead_somewhere_from_the_changelog():
    links = {(c.name, to) for c in CHANGES for to in re.findall(r"\]\((?!http)([^)#]+)", c.read_text("utf-8"))}
    assert [(name, link) for name, link in sorted(links) if not (ROOT / link).exists()] == []


def test_what_was_never_released_was_never_fixed():
    _, _, releases = (ROOT / TOWNCRIER["filename"]).read_text(encoding="utf-8").partition(TOWNCRIER["start_string"])
    fixed = [change.name for change in CHANGES if change.name.endswith(".fixed.md")]
    assert releases.strip() or fixed == [], "describe the whole in the entry of its subject"


def test_a_release_goes_below_the_head_of_the_changelog():
    assert (ROOT / TOWNCRIER["filename"]).read_text(encoding="utf-8").count(TOWNCRIER["start_string"]) == 1
