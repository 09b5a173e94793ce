# SPDX-License-Identifier: Apache-2.0
"""Statements as the API shows them, beside the second bill."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

from tests.slow.money.bill import Line
from tests.slow.money.site import Json, Site

NANO = 10**9


def lines_of(statement: Json) -> tuple[Counter[Line], dict[Line, list[int]]]:
    """Return the seconds of a statement, and the watt-hours of its charges, by what prices them.

    Each amount and the total are what follows from them.
    """
    found, drawn, total = Counter[Line](), defaultdict[Line, list[int]](list), Fraction(0)
    for one in statement["charges"]:
        unit, factor, amount = (Fraction(one[key]) for key in ("unit_price", "factor", "amount"))
        hours = Fraction(one["resource_seconds"], 3600) if one["sku"] else Fraction(1)
        if one["category"] == "energy":
            hours = Fraction(one["energy_wh"], 1000)
        expected = Fraction(0) if one["category"] == "free" else Fraction(round(unit * factor * hours * NANO), NANO)
        assert amount == expected, one
        assert one["month"] == statement["month"]
        total += amount
        line = Line(one["project_id"], one["month"], one["lease_id"], one["category"], one["sku"], unit, factor)
        if one["category"] == "energy":
            drawn[line].append(one["energy_wh"])
        else:
            found[line] += one["resource_seconds"] if one["sku"] else 1
    assert Fraction(statement["amount"]) == round(total, 2)
    assert Fraction(statement["amount"]) - Fraction(statement["rounding"]) == total
    return found, drawn


def charged(site: Site) -> tuple[Counter[Line], dict[Line, list[int]]]:
    """Return all lines of all statements, each of which is final."""
    found, drawn = Counter[Line](), defaultdict[Line, list[int]](list)
    for one in site.get("/v1/statements?all_projects=true")["statements"]:
        path = f"/v1/statements/{one['month']}?project_id={one['project_id']}"
        statement = site.get(path)["statement"]
        assert statement["state"] == "final", statement["id"]
        seconds, watt_hours = lines_of(statement)
        found += seconds
        drawn |= watt_hours
    return found, drawn


def differences(site: Site) -> list[str]:
    """Return, a line each, what one of the two bills has and the other has not."""
    ours, (theirs, drawn) = Counter(site.bill.finish(site.now)), charged(site)
    found = list(_compare_energy(site.bill.watt_hours, drawn))
    for line in sorted(ours.keys() | theirs.keys(), key=str):
        if ours[line] != theirs[line]:
            found.append(f"{_describe(line)}: expected {ours[line]}, charged {theirs[line]}")
    return found


def _compare_energy(ours: Mapping[Line, Fraction], theirs: Mapping[Line, list[int]]) -> Iterator[str]:
    """Yield where watt-hours differ by more than half of one for each charge: each of them is rounded once."""
    for line in sorted(ours.keys() | theirs.keys(), key=str):
        expected, charges = ours.get(line, Fraction(0)), theirs.get(line, [])
        if abs(expected - sum(charges)) > Fraction(len(charges), 2):
            yield f"{_describe(line)}: expected {float(expected)} Wh, charged {charges}"


def _describe(line: Line) -> str:
    where = f"{line.project} {line.month} {line.lease[:8]} {line.category} {line.sku}"
    return f"{where} {float(line.unit)} x {float(line.factor)}"
