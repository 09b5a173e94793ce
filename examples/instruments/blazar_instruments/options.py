# SPDX-License-Identifier: Apache-2.0
"""The options of instruments."""

from __future__ import annotations

from oslo_config import cfg

SECTION = "instruments"
OPTIONS: list[cfg.Opt] = [
    cfg.URIOpt("url", schemes=["http", "https"], help="Base URL of the control service."),
    cfg.StrOpt("token", secret=True, help="Token with which Blazar calls it."),
    cfg.IntOpt("timeout", default=10, min=1, help="Seconds after which a call fails."),
]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by section, for Blazar and for oslo-config-generator."""
    return [(SECTION, OPTIONS)]
