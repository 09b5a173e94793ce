# SPDX-License-Identifier: Apache-2.0
"""A simulated control service, for ``make run`` and tests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from oslo_config import cfg

from blazar.context import check_change
from blazar.model.base.errors import NotFound
from blazar_instruments.port import Instrument

LABORATORY = (
    Instrument("m-1", "microscope-1", "confocal", channels=4),
    Instrument("s-1", "analyser-1", "spectrum", channels=8),
)


class SimulatedControl:
    """Keeps instruments and grants in memory."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._instruments = {each.id: each for each in LABORATORY}
        self._granted: dict[str, tuple[str, str, int]] = {}
        self._lock = threading.Lock()

    def instruments(self) -> tuple[Instrument, ...]:
        """Return all instruments."""
        return tuple(self._instruments.values())

    def grants(self) -> Mapping[str, str]:
        """Return the ids of reservations that have channels → the id of their instrument."""
        with self._lock:
            return {reservation_id: granted[0] for reservation_id, granted in self._granted.items()}

    def grant(self, reservation_id: str, *, instrument_id: str, project_id: str, channels: int) -> None:
        """Ensure that a reservation has exactly these channels of one instrument. NotFound."""
        check_change()
        with self._lock:
            if instrument_id not in self._instruments:
                raise NotFound(f"the laboratory has no instrument {instrument_id}")
            self._granted[reservation_id] = (instrument_id, project_id, channels)

    def revoke(self, reservation_id: str) -> None:
        """Ensure that a reservation has no channels."""
        check_change()
        with self._lock:
            self._granted.pop(reservation_id, None)

    def channels(self) -> Mapping[str, tuple[str, str, int]]:
        """Return what each reservation has: instrument, project, number of channels."""
        with self._lock:
            return dict(self._granted)

    def break_down(self, instrument_id: str, fault: str | None) -> None:
        """Let an instrument fail, or (None) be repaired."""
        self._instruments[instrument_id] = replace(self._instruments[instrument_id], fault=fault)
