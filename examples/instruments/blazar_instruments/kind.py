# SPDX-License-Identifier: Apache-2.0
"""The kind ``instrument``: what operators register, and how it is polled."""

from __future__ import annotations

from collections.abc import Collection

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import KindShape, Resource, ResourceDetails, ResourceInventory, ResourceKind
from blazar.resources.contract.kind import CalendarReads, CloudResource, Kind, Polled
from blazar_instruments.port import Control, Instrument, control

INSTRUMENT = ResourceKind("instrument")
CHANNEL = "CHANNEL"
"""The resource class of which an instrument has a capacity."""


SHAPE = KindShape(
    "instrument",
    "instruments",
    registration={
        "type": "object",
        "description": "an object with the name of an instrument",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {"name": {"type": "string", "maxLength": 255, "description": "the name of an instrument"}},
    },
    attributes={"model": {"type": "string"}},
    public=("model",),
    shown=("model",),
    named=True,
)


class Instruments(Kind):
    """Instruments of the laboratory. Their registration changes nothing there."""

    kind = INSTRUMENT
    shape = SHAPE

    def __init__(self, service: Control) -> None:
        self._control = service

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Instruments:
        """Return the kind as configured."""
        return cls(control(conf, cloud))

    def find(self, request: Registration) -> CloudResource:
        """Return the instrument of this name. InvalidInput, NotFound."""
        name = request.given.get("name")
        if not isinstance(name, str) or not name.isprintable():
            raise InvalidInput("name is missing or no word; give the name of an instrument")
        found = self._named(name)
        return CloudResource(found.id, found.name, {"model": found.model})

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the model and the channels of an instrument."""
        return _details(self._named(in_cloud.name))

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return which instruments work, and what is new about them; one call."""
        there = {each.name: each for each in self._control.instruments()}
        details = {each.id: _details(there[each.name]) for each in registered if each.name in there}
        changed = {
            each.id: details[each.id] for each in registered if details.get(each.id, each.details) != each.details
        }
        return Polled({name: each.fault for name, each in there.items()}, changed)

    def _named(self, name: str) -> Instrument:
        for each in self._control.instruments():
            if each.name == name:
                return each
        raise NotFound(f"the laboratory has no instrument {name[:80]}")


def _details(instrument: Instrument) -> ResourceDetails:
    return ResourceDetails({"model": instrument.model}, ResourceInventory(Amounts.of({CHANNEL: instrument.channels})))
