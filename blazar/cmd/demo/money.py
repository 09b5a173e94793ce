# SPDX-License-Identifier: Apache-2.0
"""What leases of the demo cost: a price list from its first day on, dearer prices to come, and one charge corrected."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from blazar.cmd.demo.stage import Stage
from blazar.model.base.clock import zulu
from blazar.model.base.paging import Page
from blazar.model.billing.charges import ChargeCategory, format_factor
from blazar.model.billing.statements import ChargeQuestion, CorrectionRequest
from blazar.model.leases.requests import Actor

_OPERATOR = Actor("admin", "demo")
_PRICES: list[dict[str, Any]] = [
    {"sku": "host-h100", "measure": "host", "requirement": ["==", "$gpu", "H100"], "per_hour": "6.40"},
    {"sku": "host-a100", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "3.20"},
    {"sku": "host-memory", "measure": "host", "requirement": ["==", "$node_type", "big-memory"], "per_hour": "1.60"},
    {"sku": "host", "measure": "host", "per_hour": "0.80"},
    {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.013"},
    {"sku": "gigabyte", "measure": "gigabyte", "per_hour": "0.0002"},
]
_POWER: dict[str, Any] = {"sku": "power", "measure": "kwh", "per_kwh": "0.28"}
_RULES: dict[str, Any] = {
    "currency": "EUR",
    "decimals": 2,
    "time_zone": "Europe/Berlin",
    "fee": "2.00",
    "hours": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}],
    "unused": "1.20",
    "minimum": "PT1H",
    "round_up": "PT1M",
    "cancellation": [{"before_start": "P7D", "share": "0"}, {"before_start": "P1D", "share": "0.2"}, {"share": "0.5"}],
    "early_return": "0.1",
}
_DEARER = {"host-h100": "7.20", "host-a100": "3.60", "power": "0.31"}
AHEAD = timedelta(days=30)
"""How long before they hold the dearer prices are published."""


def publish(stage: Stage) -> None:
    """Publish the prices of the demo's first day; they hold from the next second on."""
    now = stage.clock.now()
    _publish(stage, now, {})
    stage.clock.instant = now + timedelta(seconds=2)


def raise_prices(stage: Stage) -> None:
    """Publish dearer prices that are to come."""
    valid = (stage.clock.now() + AHEAD).replace(hour=0, minute=0, second=0, microsecond=0)
    _publish(stage, valid, _DEARER)


def _publish(stage: Stage, valid_from: datetime, dearer: Mapping[str, str]) -> None:
    """Publish prices, some of which are dearer; energy has one only if it is recorded."""
    rules, prices = _RULES, [*_PRICES]
    if stage.store.energy.terms.records:
        rules = {**_RULES, "pue": format_factor(stage.store.energy.terms.pue)}
        prices.append(_POWER)
    units = ({key: dearer.get(one["sku"], one[key]) for key in ("per_hour", "per_kwh") if key in one} for one in prices)
    found = [one | unit for one, unit in zip(prices, units, strict=True)]
    stage.manager.price_lists.publish({**rules, "valid_from": zulu(valid_from), "prices": found}, _OPERATOR)


def charge(stage: Stage) -> None:
    """Charge all that is to be charged by now, with what hosts drew as far as that is recorded by now."""
    stage.manager.energy_work.run_once()
    while stage.manager.closing.run_once():
        pass


def correct(stage: Stage, before: datetime) -> None:
    """Give back a half of the first charge for use that ended before an instant; nothing if there is none."""
    question = ChargeQuestion(Page(1, "id"), None, category=ChargeCategory.USAGE)
    for one in stage.manager.charges.page(question).items:
        if one.line.window.end <= before:
            request = CorrectionRequest(one.id, -(one.line.nano // 2), "its hosts were slow for half of the time")
            stage.manager.charges.correct(request)
