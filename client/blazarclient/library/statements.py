# SPDX-License-Identifier: Apache-2.0
"""Statements and charges: what a project has to pay for a month, line by line, and corrections of that."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from blazarclient.library.decoding import decode
from blazarclient.library.transport import CSV, Transport, part_of_path


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A line of the ledger. Amounts are decimals as texts; ``start`` and ``end`` are the time that it is for.

    Of lines of the category ``energy`` ``energy_wh`` are watt-hours, ``gco2`` grams of CO2e; only those with a sku cost
    something, by the kilowatt-hour.
    """

    id: int
    lease_id: str
    project_id: str
    month: str
    category: str
    amount: str
    currency: str
    start: datetime | None = None
    end: datetime | None = None
    lease_name: str | None = None
    user_id: str | None = None
    reservation_id: str | None = None
    status: str | None = None
    sku: str | None = None
    resource_seconds: int = 0
    unit_price: str = "0"
    factor: str = "1"
    price_list: int | None = None
    region: str = ""
    corrects: int | None = None
    reason: str | None = None
    at: datetime | None = None
    energy_wh: int | None = None
    energy_source: str | None = None
    gco2: int | None = None
    carbon: str | None = None


@dataclass(frozen=True, kw_only=True)
class StatementTotal:
    """The sum of the charges of a category, a status and a sku."""

    category: str
    status: str
    sku: str | None = None
    count: int = 0
    resource_seconds: int = 0
    amount: str = "0"
    energy_wh: int | None = None
    gco2: int | None = None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a project has to pay for a month, and what hosts drew for it. ``charges`` are empty in lists."""

    id: str
    project_id: str
    month: str
    state: str
    currency: str
    amount: str
    rounding: str = "0"
    provider: str | None = None
    energy_wh: int | None = None
    gco2: int | None = None
    totals: tuple[StatementTotal, ...] = ()
    charges: tuple[Charge, ...] = field(default=(), hash=False)


class Statements:
    """What is to be paid for each month."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, project_id: str | None = None, all_projects: bool = False) -> Iterator[Statement]:
        """Yield the statements of the own project without their charges, latest first; operators also of others."""
        query = {"project_id": project_id, "all_projects": all_projects or None}
        for item in self._transport.pages("/statements", "statements", query=query):
            yield decode(Statement, item)

    def get(self, month: str, *, project_id: str | None = None) -> Statement:
        """Return the statement of a month, such as ``2030-04``; NotFound if nothing was charged in it."""
        query = {} if project_id is None else {"project_id": project_id}
        answer = self._transport.ask("GET", f"/statements/{part_of_path(month)}", query=query)
        part = answer.part("statement")
        return decode(Statement, {**part, "charges": [_renamed(charge) for charge in part["charges"]]})

    def export(self, month: str, *, project_id: str | None = None) -> str:
        """Return the bill of a month in the columns of FOCUS 1.2, as CSV; NotFound if nothing was charged in it."""
        query = {"format": "focus", **({} if project_id is None else {"project_id": project_id})}
        path = f"/statements/{part_of_path(month)}"
        return str(self._transport.ask("GET", path, query=query, headers={"Accept": CSV}).body)


class Charges:
    """The lines of the ledger."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        project_id: str | None = None,
        all_projects: bool = False,
        lease_id: str | None = None,
        month: str | None = None,
        category: str | None = None,
    ) -> Iterator[Charge]:
        """Yield the charges of the own project in the order of their ids; operators also those of others."""
        of = {"project_id": project_id, "all_projects": all_projects or None}
        query = {**of, "lease_id": lease_id, "month": month, "category": category}
        for item in self._transport.pages("/charges", "charges", query=query):
            yield decode(Charge, _renamed(item))

    def correct(self, charge_id: int, amount: str, reason: str) -> Charge:
        """Answer a charge that was wrong by another one, once, and return that; NotFound. A credit is below 0."""
        body = {"corrects": charge_id, "amount": amount, "reason": reason}
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answer = self._transport.ask("POST", "/charges", body=body, headers=key)
        return decode(Charge, _renamed(answer.part("charge")))


def _renamed(charge: dict[str, object]) -> dict[str, object]:
    return {**charge, "start": charge.get("from"), "end": charge.get("to")}
