# SPDX-License-Identifier: Apache-2.0
"""Tests name calls of the store in texts, which no type checks: each text is a call that there is.

A test that kills a manager at a call of a former name kills nobody, and passes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blazar.rpc.interface import NOUNS
from blazar.store.sql.engine import make_engine
from blazar.store.store import Store

ROOT = Path(__file__).parents[2]
_TEXT = re.compile(r'"([a-z_]+)\.([a-z_]+)"')
OTHERS = {
    *("events.status", "leases.sqlite", "regions.sqlite", "journal.py", "findings.log", "rules.yaml"),
    # Calls of a manager that the tests themselves refuse.
    "claims.stop",
}
"""Texts of this form that are something else."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> dict[str, object]:
    store = Store(make_engine(f"sqlite:///{tmp_path_factory.mktemp('store') / 'none.sqlite'}"))
    return {noun: calls for noun, calls in vars(store).items() if noun != "transactions"}


def test_each_call_that_a_test_names_is_there(calls):
    named, missing = 0, set[str]()
    for path in (*ROOT.glob("tests/**/*.py"), *ROOT.glob("bench/**/*.py")):
        for noun, call in _TEXT.findall(path.read_text("utf-8")):
            if noun in calls and f"{noun}.{call}" not in OTHERS:
                named += 1
                if not (hasattr(calls[noun], call) or hasattr(NOUNS.get(noun), call)):
                    missing.add(f"{path.relative_to(ROOT)}: {noun}.{call}")
    assert missing == set()
    assert named > 100
