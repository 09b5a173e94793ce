# SPDX-License-Identifier: Apache-2.0
"""How an account keeps what it had of hosts whose energy is still to be told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Any

from blazar.model.base.window import Window
from blazar.model.billing.charges import ChargeStatus, format_factor
from blazar.model.billing.power import EnergyPrice, PowerShare


def parse_shares(kept: Iterable[dict[str, Any]]) -> tuple[PowerShare, ...]:
    """Return the shares that ``spell_shares`` has written."""
    parse = datetime.fromisoformat
    return tuple(
        PowerShare(
            one["reservation"],
            one["region"],
            Window(parse(one["from"]), parse(one["until"])),
            _parse_price(*one["price"]),
            tuple(one["hosts"]),
            one["vcpus"],
            one["milliwatts"],
        )
        for one in kept
    )


def _parse_price(sku: str | None, version: int | None, unit_nano: int, factor: str, status: str) -> EnergyPrice:
    return EnergyPrice(sku, version, unit_nano, Fraction(factor), ChargeStatus(status))


def spell_shares(shares: Iterable[PowerShare]) -> list[dict[str, Any]]:
    """Return shares as JSON."""
    return [
        {
            "reservation": one.reservation_id,
            "region": one.region,
            "from": one.window.start.isoformat(),
            "until": one.window.end.isoformat(),
            "price": _spell_price(one.price),
            "hosts": list(one.hosts),
            "vcpus": one.vcpus,
            "milliwatts": one.milliwatts,
        }
        for one in shares
    ]


def _spell_price(price: EnergyPrice) -> list[Any]:
    return [price.sku, price.version, price.unit_nano, format_factor(price.factor), str(price.status)]
