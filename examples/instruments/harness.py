# SPDX-License-Identifier: Apache-2.0
"""What the conformance suite must know of ``lab:instrument``: a harness as a package has it in its own tests."""

from __future__ import annotations

from collections.abc import Collection

from blazar_instruments.api import PART
from blazar_instruments.kind import Instruments
from blazar_instruments.simulated import SimulatedControl
from blazar_instruments.type import LabInstrument
from oslo_config import cfg

from blazarconformance import Harness, Invalid, Surroundings


class Laboratory:
    """A laboratory with two instruments."""

    def __init__(self, around: Surroundings) -> None:
        self._control = SimulatedControl(cfg.ConfigOpts())
        self._port = around.watched(self._control)
        self.type = self.another_type()
        self.kind = Instruments(self._port)

    def another_type(self) -> LabInstrument:
        """Return the type as another manager has it."""
        return LabInstrument(self._port)

    def snapshot(self) -> dict[str, object]:
        """Return who has channels of what."""
        return {"grants": self._control.channels()}

    def usable(self, reservation_id: str) -> Collection[str]:
        """Return the instrument of which a reservation has channels."""
        names = {each.id: each.name for each in self._control.instruments()}
        return [names[granted] for key, granted in self._control.grants().items() if key == reservation_id]

    def wreck(self, reservation_id: str) -> None:
        """Take the channels back by hand."""
        self._control.revoke(reservation_id)

    def fail(self, name: str) -> None:
        """Let an instrument fail."""
        self._break_down(name, "its laser is off")

    def recover(self, name: str) -> None:
        """Let an instrument be repaired."""
        self._break_down(name, None)

    def _break_down(self, name: str, fault: str | None) -> None:
        (found,) = (each.id for each in self._control.instruments() if each.name == name)
        self._control.break_down(found, fault)


HARNESS = Harness(
    name="lab:instrument",
    build=Laboratory,
    registrations=({"name": "microscope-1"}, {"name": "analyser-1"}),
    strangers=({"name": "telescope-1"},),
    request={"channels": 2, "resource_properties": ""},
    others=({"channels": "3", "resource_properties": '["=", "$model", "confocal"]'}, {"channels": 1}),
    fits=6,
    needed=("channels",),
    numbers=("channels",),
    requirement="resource_properties",
    known='["=", "$model", "confocal"]',
    invalid=(Invalid({"channels": "many"}, "channels"), Invalid({"samples_from": 7}, "samples_from")),
    referring={"channels": 1, "samples_from": {"reservation": 0}},
    per_lease={"instrument": 1},
    part=PART,
)
