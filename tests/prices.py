# SPDX-License-Identifier: Apache-2.0
"""Documents of price lists, and lists that are published."""

from __future__ import annotations

from typing import Any

from blazar.model.billing.published import PublishedList
from blazar.model.leases.requests import Actor
from tests.world import World


def a_document(**changes: Any) -> dict[str, Any]:
    """Return a document: a host costs 0.80 EUR an hour since 2030-03-01."""
    return {
        "currency": "EUR",
        "decimals": 2,
        "valid_from": "2030-03-01T00:00:00Z",
        "time_zone": "Europe/Berlin",
        "prices": [{"sku": "host", "measure": "host", "per_hour": "0.80"}],
        **changes,
    }


def publish(world: World, **changes: Any) -> PublishedList:
    """Publish such a document."""
    return world.manager.price_lists.publish(a_document(**changes), Actor("olga", "operators")).new
