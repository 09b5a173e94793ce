# SPDX-License-Identifier: Apache-2.0
"""The limits of the demo: what each project may use in a month and at one time, and how many starts are promised."""

from __future__ import annotations

from oslo_config import cfg

HOURS = {"host": 5000, "device": 400}
AT_ONCE = {"gigabyte": 5000}
PROMISES = 2
"""So few that others wait without one."""


def set_limits(conf: cfg.ConfigOpts) -> None:
    """Set the limits of the demo, unless a configuration file sets its own."""
    conf.set_default("enabled_filters", ["ResourceHoursFilter", "MaxUnitsFilter"], group="enforcement")
    conf.set_default("max_resource_hours", HOURS, group="enforcement")
    conf.set_default("max_units_of", AT_ONCE, group="enforcement")
    conf.set_default("promises", PROMISES, group="api")
