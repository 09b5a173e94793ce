# SPDX-License-Identifier: Apache-2.0
"""What tests of the ledger do and look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from blazar.context import scope
from blazar.model.base.errors import CloudUnavailable
from blazar.model.billing.published import Publication, draft_list
from blazar.model.leases.requests import Actor
from blazar.store.sql.tables import accounts, charges, planned
from tests.world import NOON, World

HOUR = timedelta(hours=1)
CURIE = Actor("curie", "physics")
PRICES: dict[str, Any] = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2030-01-01T00:00:00Z",
    "time_zone": "UTC",
    "prices": [
        {"sku": "host", "measure": "host", "per_hour": "1.00"},
        {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.10"},
        {"sku": "instance", "measure": "instance", "per_hour": "0.01"},
    ],
}


def publish(world: World, at=None, **more: Any) -> None:
    """Publish a price list as of an instant; by default of a day before noon, by when nothing is booked."""
    at = NOON - 24 * HOUR if at is None else at
    new = draft_list({**PRICES, **more}, world.store.price_lists.newest(), now=at)
    world.store.price_lists.add(Publication(new, ()))
    # Whatever the catalog says of prices was said before.
    world.store.resources.catalog("host")


def act(world: World, operation, *args: Any, **more: Any) -> Any:
    """Do what a user asks for."""
    with scope(actor=CURIE):
        return operation(*args, **more)


def close(world: World, at=None) -> None:
    """Close what is due, an hour later than the end of all, or at an instant."""
    if at is not None:
        world.run_to(at)
    world.manager.closing.run_once()


def charged(world: World, project: str | None = None) -> dict[str, float]:
    """Return what was charged in units of the currency, by category and status; what is free with its hours."""
    found: dict[str, float] = defaultdict(float)
    for row in rows(world, charges):
        if project in (None, row["project_id"]):
            is_free = row["category"] == "free"
            value = row["resource_seconds"] / 3600 if is_free else row["nano"] / 10**9
            found[f"{row['category']} {row['status']}"] += value
    return dict(found)


def expected(world: World, project: str | None = None) -> float:
    """Return what the rest of all leases, or of those of a project, will cost."""
    return sum(row["nano"] for row in rows(world, planned) if project in (None, row["project_id"])) / 10**9


def states(world: World) -> list[tuple[str, str]]:
    """Return the projects and states of all accounts, in the order in which they were opened."""
    return [
        (row["project_id"], row["state"]) for row in sorted(rows(world, accounts), key=lambda row: row["opened_at"])
    ]


def rows(world: World, table: sa.Table) -> list[Any]:
    with world.engine.connect() as connection:
        return list(connection.execute(sa.select(table)).mappings())


@contextmanager
def failing(world: World) -> Iterator[None]:
    """Let no host be assigned, and no aggregate be made, while the block runs."""

    def refuse(name: str, *_: Any) -> None:
        if "aggregate" in name or "host" in name:
            raise CloudUnavailable("Nova is down")

    world.faults.on_call = refuse
    try:
        yield
    finally:
        world.faults.on_call = None
