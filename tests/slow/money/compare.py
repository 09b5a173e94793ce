# SPDX-License-Identifier: Apache-2.0
"""Statements as the API shows them, beside the second bill."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from tests.slow.money.bill import Line
from tests.slow.money.site import Json, Site

NANO = 10**9


def lines_of(statement: Json) -> Counter[Line]:
    """Return the seconds of a statement by what prices them; each amount and the total are what follows from them."""
    found, total = Counter[Line](), Fraction(0)
    for one in statement["charges"]:
        unit, factor, amount = (Fraction(one[key]) for key in ("unit_price", "factor", "amount"))
        hours = Fraction(one["resource_seconds"], 3600) if one["sku"] else Fraction(1)
        expected = Fraction(0) if one["category"] == "free" else Fraction(round(unit * factor * hours * NANO), NANO)
        assert amount == expected, one
        assert one["month"] == statement["month"]
        total += amount
        line = Line(one["project_id"], one["month"], one["lease_id"], one["category"], one["sku"], unit, factor)
        found[line] += one["resource_seconds"] if one["sku"] else 1
    assert Fraction(statement["amount"]) == round(total, 2)
    assert Fraction(statement["amount"]) - Fraction(statement["rounding"]) == total
    return found


def charged(site: Site) -> Counter[Line]:
    """Return all lines of all statements."""
    found = Counter[Line]()
    for one in site.get("/v1/statements?all_projects=true")["statements"]:
        path = f"/v1/statements/{one['month']}?project_id={one['project_id']}"
        found += lines_of(site.get(path)["statement"])
    return found


def differences(site: Site) -> list[str]:
    """Return, a line each, what one of the two bills has and the other has not."""
    ours, theirs = Counter(site.bill.finish(site.now)), charged(site)
    found = []
    for line in sorted(ours.keys() | theirs.keys(), key=str):
        if ours[line] != theirs[line]:
            where = f"{line.project} {line.month} {line.lease[:8]} {line.category} {line.sku}"
            price = f"{float(line.unit)} x {float(line.factor)}"
            found.append(f"{where} {price}: expected {ours[line]}, charged {theirs[line]}")
    return found
