# SPDX-License-Identifier: Apache-2.0
"""Rules as operators write them."""

from __future__ import annotations

from typing import Any

DAYTIME: dict[str, Any] = {
    "time_zone": "Europe/Berlin",
    "open": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "08:00", "to": "20:00"}],
}


def a_rule(kind: str = "hours", applies_to: dict[str, Any] | None = None, **content: Any) -> dict[str, Any]:
    """Return a rule: leases begin on weekdays from 08:00 to 20:00 in Berlin; or of another kind."""
    given = {**DAYTIME, **content} if kind == "hours" else content
    return {"kind": kind, "content": given, **({} if applies_to is None else {"applies_to": applies_to})}
