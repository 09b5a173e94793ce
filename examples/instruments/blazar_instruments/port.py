# SPDX-License-Identifier: Apache-2.0
"""The port: the control service of a laboratory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from oslo_config import cfg

from blazar.clouds.ports import Cloud


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument of the laboratory."""

    id: str
    name: str
    model: str
    channels: int
    fault: str | None = None


class Control(Protocol):
    """The control service. Every call may raise ``CloudUnavailable``; those that change it check the claim first."""

    def instruments(self) -> tuple[Instrument, ...]:
        """Return all instruments."""

    def grants(self) -> Mapping[str, str]:
        """Return the ids of reservations that have channels → the id of their instrument."""

    def grant(self, reservation_id: str, *, instrument_id: str, project_id: str, channels: int) -> None:
        """Ensure that a reservation has exactly these channels of one instrument. NotFound."""

    def revoke(self, reservation_id: str) -> None:
        """Ensure that a reservation has no channels."""


def control(conf: cfg.ConfigOpts, cloud: Cloud) -> Control:
    """Return the control service of the laboratory, real or simulated as the cloud is; InvalidInput."""
    port: Control = cloud.others.port("instruments", conf)
    return port
