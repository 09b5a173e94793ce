# SPDX-License-Identifier: Apache-2.0
"""``rule``: when projects may have leases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, URL, Run, sent

RULE = {
    "name": "nights",
    "kind": "gap",
    "content": {"at_least": "PT12H"},
    "applies_to": {"projects": ["physics"]},
    "active": True,
    "revision": 3,
    "created_at": "2026-11-20T09:00:00Z",
    "updated_at": None,
}


@pytest.fixture
def told(service: Any) -> Any:
    """A service with a rule."""
    service.get(f"{URL}/rules", json={"rules": [RULE], "links": []}, headers=NEW)
    service.get(f"{URL}/rules/nights", json={"rule": RULE}, headers=NEW)
    service.put(f"{URL}/rules/nights", json={"rule": RULE}, headers=NEW)
    service.delete(f"{URL}/rules/nights", status_code=204, headers=NEW)
    return service


def test_rules_are_listed_and_shown(run: Run, told: Any) -> None:
    assert run("rule", "list", "-f", "value", "-c", "name", "-c", "kind")[1].split() == ["nights", "gap"]
    code, out, _ = run("rule", "show", "nights", "-f", "json")
    assert code == 0
    shown = json.loads(out)
    assert (shown["content"], shown["applies_to"]) == (RULE["content"], RULE["applies_to"])
    assert '"at_least": "PT12H"' in run("rule", "show", "nights")[1]


def test_a_rule_is_written_from_a_file_and_deleted(run: Run, told: Any, tmp_path: Path) -> None:
    file = tmp_path / "rule.json"
    file.write_text(json.dumps({"kind": "gap", "content": {"at_least": "PT12H"}}))
    assert run("rule", "write", "nights", str(file))[0] == 0
    assert sent(told, "PUT")[-1].json() == {"kind": "gap", "content": {"at_least": "PT12H"}}
    assert run("rule", "delete", "nights")[0] == 0
    file.write_text("[]")
    assert "holds no JSON object; see the page on rules" in run("rule", "write", "nights", str(file))[2]
