# SPDX-License-Identifier: Apache-2.0
"""The resource type ``generic``: whole things of a class, or units of one that several reservations share."""

from __future__ import annotations

from dataclasses import replace

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.leases.reservation import Content
from blazar.model.resources.resource import GENERIC
from blazar.resources.contract.actions import update_values, with_action
from blazar.resources.contract.values import Given
from blazar.resources.generic.hooked_type import Hooked
from blazar.resources.generic.kind import UNIT
from blazar.resources.generic.parameters import AMOUNT, ASKED_FOR, CLASS, MAX, MIN, SCHEMA, GenericParameters


class Generic(Hooked):
    """The resource type ``generic``."""

    resource_type = "generic"
    schema = SCHEMA
    kind = GENERIC
    asked_for = ASKED_FOR
    advice = "a property of the resources of this class"

    def parameters(self, given: Given) -> Content:
        """Return class, counts, requirement and action; other keys are left out. InvalidInput."""
        return GenericParameters.checked(with_action(given.values)).content

    def wanted(self, parameters: Content) -> GenericParameters:
        """Return what a reservation asks for."""
        return GenericParameters.of(parameters)

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for whole resources of the class, or for units of one of them."""
        wanted, shared = self.wanted(parameters), AMOUNT in parameters.values
        return replace(
            super().demand(parameters, known=known),
            per_instance=Amounts.of({UNIT: 1}) if shared else None,
            affinity=Affinity.TOGETHER if shared else Affinity.ANY,
            reference=CLASS if wanted.is_any_of_class else None,
            word=f"{wanted.class_name} unit",
        )

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``; InvalidInput."""
        before = GenericParameters.of(current)
        shared = before.amount is not None
        for name in (MIN, MAX) if shared else (AMOUNT,):
            if name in change.values:
                has = "units of a resource" if shared else "whole resources"
                raise InvalidInput(
                    f"{name} cannot be set: the reservation has {has}; make another lease", at=f"/{name}"
                )
        after = GenericParameters.checked(update_values(before.content.values, change))
        if after.class_name != before.class_name:
            raise InvalidInput(
                f"class cannot be changed from {before.class_name}; make another lease for the other class",
                at=f"/{CLASS}",
            )
        return after.content
