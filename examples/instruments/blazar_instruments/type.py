# SPDX-License-Identifier: Apache-2.0
"""The resource type ``lab:instrument``: channels of one instrument.

It may get its samples from another reservation of the lease: then it is granted after that one, and taken back before.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement, property_keys
from blazar.model.resources.resource import Resource
from blazar.resources.contract.parameters import (
    reference_of,
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    whole_number,
)
from blazar.resources.contract.schemas import COUNT, REQUIREMENT, a_reference, a_request
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, Given, Progress, Reference, Task
from blazar_instruments.kind import CHANNEL, INSTRUMENT
from blazar_instruments.port import Control, control

RESOURCE_TYPE = "lab:instrument"
OWN = frozenset({"id", "model"})
SCHEMA = a_request(
    {
        "channels": {**COUNT, "title": "Channels", "description": "a whole number of channels, at least 1"},
        "resource_properties": REQUIREMENT,
        "samples_from": {**a_reference(RESOURCE_TYPE), "title": "Samples from"},
    },
    required=("channels",),
    example={"channels": 2, "resource_properties": ["==", "$model", "confocal"]},
)


@dataclass(frozen=True, slots=True)
class InstrumentParameters:
    """The parameters of a reservation, named as in the API; the properties are a requirement as JSON text.

    ``samples_from`` is a reference to the reservation of the instrument that prepares the samples, or None.
    """

    channels: int
    resource_properties: str | None
    samples_from: object = None

    @classmethod
    def of(cls, content: Content) -> InstrumentParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "channels"),
            stored_maybe_text(content, "resource_properties"),
            content.values.get("samples_from"),
        )

    @property
    def references(self) -> tuple[Reference, ...]:
        """Return the reference, if there is one. InvalidInput."""
        if self.samples_from is None:
            return ()
        return (reference_of(self.samples_from, "/samples_from", RESOURCE_TYPE),)

    @property
    def requirement(self) -> Requirement:
        """Return what the instrument must have."""
        return requirement_of(resource_properties=self.resource_properties)


class LabInstrument(ResourceType):
    """The resource type ``lab:instrument``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = INSTRUMENT

    def __init__(self, service: Control) -> None:
        self._control = service

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> LabInstrument:
        """Return the type as configured."""
        return cls(control(conf, cloud))

    def parameters(self, given: Given) -> Content:
        """Return the number of channels and the requirement; InvalidInput."""
        if "channels" not in given.values:
            raise InvalidInput("Missing parameter channels (a lab:instrument reservation needs the number of channels)")
        channels = whole_number(given.values["channels"], "channels", least=1, what="a whole number of channels")
        wanted = requirement_text(given.values.get("resource_properties"), "resource_properties")
        asked = InstrumentParameters(channels, wanted, given.values.get("samples_from"))
        _ = asked.references
        return Content(asdict(asked))

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return the reservation from which the samples come."""
        return InstrumentParameters.of(parameters).references

    def requirement(self, parameters: Content) -> Requirement:
        """Return what the instrument must have, so that an operator cannot change it meanwhile."""
        return InstrumentParameters.of(parameters).requirement

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for the channels, on one instrument that meets the requirement."""
        wanted = InstrumentParameters.of(parameters)
        if unknown := sorted(property_keys(wanted.requirement) - OWN - known):
            raise InvalidInput(f"resource_properties asks for ${unknown[0]}, which no instrument has; $model is known")
        return Demand(
            kind=self.kind,
            min_count=1,
            max_count=1,
            requirement=wanted.requirement,
            per_instance=Amounts.of({CHANNEL: wanted.channels}),
        )

    def start(self, task: Task) -> Progress:
        """Ensure that the project has the channels."""
        (instrument,) = task.resources
        self._control.grant(
            task.reservation.id,
            instrument_id=instrument.external_id,
            project_id=task.lease.project_id,
            channels=InstrumentParameters.of(task.reservation.parameters).channels,
        )
        # Users see the cloud ids of their reservations.
        return Done(Content({"instrument": instrument.name}))

    def end(self, task: Task) -> Progress:
        """Ensure that the project has no channels by this reservation."""
        self._control.revoke(task.reservation.id)
        return Done()

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have channels."""
        return frozenset(self._control.grants())
