# SPDX-License-Identifier: Apache-2.0
"""The page of what differs on purpose is where people look, and names what they ask about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "different.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "link"), [("README.md", "docs/different.md"), ("docs/better-than-before.md", "different.md")]
)
def test_the_page_is_linked(page, link):
    assert f"({link})" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        "too few free addresses",
        "`before_end`",
        "`private`",
        "`PATCH /os-hosts/properties",
        "the minute",
        "reservation 0.9",
        "tables",
    ],
)
def test_what_differs_on_purpose_is_on_the_page(words):
    assert [line for line in PAGE.splitlines() if line.startswith("| ") and words in line]


def test_every_row_says_what_both_do():
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line
    ]
    assert all(cell.strip() for row in rows for cell in row[1:])
