# SPDX-License-Identifier: Apache-2.0
"""The energy of a site as ``[energy]`` says: what measures hosts, what tells carbon, and what is recorded of both."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

from oslo_config import cfg

from blazar.clouds import curve_file, curve_url
from blazar.clouds.curve_file import CurveFile, read_pue
from blazar.clouds.curve_url import CurveUrl
from blazar.clouds.ports.energy import CarbonSource
from blazar.clouds.prometheus_server import server_options
from blazar.model.base.errors import InvalidInput
from blazar.model.energy.book import EnergyTerms
from blazar.model.energy.consumption import read_number

SECTION = "energy"

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Record by the hour what hosts draw and what that emits, and tell both with what leases are charged. What "
        "is not measured is rated by the properties power_idle_w and power_max_w of a host.",
    ),
    cfg.BoolOpt(
        "ask_adapters",
        default=False,
        help="Every five minutes ask the adapter of each host that has one (Redfish, a hook) for its watts.",
    ),
    cfg.StrOpt(
        "load",
        default="0.5",
        help="Load of hosts that are not measured, from 0 (power_idle_w) to 1 (power_max_w). blazar-manager reads it.",
    ),
    *server_options(
        'A query in PromQL for the watts of hosts, with the label that has the name of the host as LABEL=~"{host}", '
        'and with one value for each host: sum by (node_name) (kepler_platform_watts{node_name=~"{host}"}). With a '
        'label of the region as LABEL="{region}", hosts of two regions may have one name.'
    ),
    *curve_file.OPTIONS,
    *curve_url.OPTIONS,
]


def read_carbon(section: Any, cafile: str | None) -> CarbonSource:
    """Return what tells the carbon of the site; InvalidInput names the option."""
    if section.carbon_file and section.carbon_url:
        raise InvalidInput("[energy] carbon_file and carbon_url are both set; keep one")
    if section.carbon_url:
        return CurveUrl.configured(section, read_pue(section), cafile)
    return CurveFile.configured(section)


def read_terms(section: Any) -> EnergyTerms:
    """Return what is recorded of energy, and told of carbon; InvalidInput names the option."""
    tells_carbon = bool(section.carbon_file or section.carbon_url)
    records = section.enabled
    return EnergyTerms(records, tells_carbon and records, read_pue(section), section.ask_adapters, read_load(section))


def read_load(section: Any) -> Fraction:
    """Return the load of hosts that are rated; InvalidInput."""
    with suppress(ValueError):
        load = read_number(section.load)
        if load <= 1:
            return load
    raise InvalidInput(f"[energy] load is {section.load[:40]!r}; give a number from 0 to 1, such as 0.5")
