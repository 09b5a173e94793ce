# SPDX-License-Identifier: Apache-2.0
"""Refused leases and changes: why there was not enough, and what would fit, added to the error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from blazar.manager.changing.new_leases import NewLease
from blazar.manager.search.availability import AvailabilityService
from blazar.model.base.clock import spell, zulu
from blazar.model.base.errors import BlazarError, NotEnoughResources, OthersWait, UsageDenied
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.search.availability import (
    Availability,
    AvailabilityQuestion,
    Change,
    render_alternatives,
    render_reasons,
)

LOG = logging.getLogger(__name__)


class DemandListener(Protocol):
    """Is told of what is asked for and refused."""

    def count_lease(self, code: str, request: LeaseRequest, new: NewLease | None) -> None:
        """Count a new lease that was refused; ``new`` is None if it was before it was known what it asks for."""

    def count_change(self, code: str, lease_id: str) -> None:
        """Count a change of a lease that was refused."""


def is_unmet(error: BlazarError) -> bool:
    """Return whether an error says that there is not enough, or that a limit does not allow more."""
    return isinstance(error, NotEnoughResources | OthersWait | UsageDenied) or error.code == UsageDenied.code


class Refusals:
    """Explains refusals, if that is ``enabled``, each at a small part of the cost of a question; and tells of them."""

    def __init__(self, availability: AvailabilityService, demand: DemandListener, *, enabled: bool) -> None:
        self._availability = availability
        self._demand = demand
        self._enabled = enabled

    @contextmanager
    def tell_of_lease(self, request: LeaseRequest) -> Iterator[list[NewLease]]:
        """Tell of a new lease that the block refuses; the block adds it to the list once it knows what it asks for."""
        asked: list[NewLease] = []
        try:
            yield asked
        except BlazarError as error:
            if is_unmet(error):
                self._demand.count_lease(error.code, request, asked[0] if asked else None)
            raise

    @contextmanager
    def tell_of_change(self, lease_id: str) -> Iterator[None]:
        """Tell of a change of a lease that the block refuses."""
        try:
            yield
        except BlazarError as error:
            if is_unmet(error):
                self._demand.count_change(error.code, lease_id)
            raise

    def explain_lease(self, error: NotEnoughResources, request: LeaseRequest) -> None:
        """Explain why a new lease was refused."""
        asker = Actor(request.user_id, request.project_id, request.operator)
        self._explain(
            error,
            AvailabilityQuestion(
                asker, reservations=request.reservations, start=request.start, end=request.end, limit=1
            ),
        )

    def explain_change(self, error: NotEnoughResources, lease_id: str, change: LeaseChange) -> None:
        """Explain why a change of a lease was refused."""
        self._explain(
            error,
            AvailabilityQuestion(
                change.asked_by or Actor("", ""),
                lease_id=lease_id,
                changes=change.reservations,
                start=change.start,
                end=change.end,
                limit=1,
            ),
        )

    def _explain(self, error: NotEnoughResources, question: AvailabilityQuestion) -> None:
        if not self._enabled:
            return
        try:
            found = self._availability.explain(question)
        except BlazarError as trouble:
            # The refusal stands as it is: what would explain it cannot be read.
            LOG.debug("Refusal is not explained: %s", trouble.message)
            return
        if not found.reasons:
            # Something has changed since: the same request may fit now.
            return
        text = _sentence(found)
        error.message = _append(error.message, text)
        error.args = (error.message,)
        error.public = None if error.public is None else _append(error.public, text)
        error.pointer = found.reasons[0].pointer
        error.data = {
            "reasons": render_reasons(found.reasons),
            "alternatives": render_alternatives(found.alternatives),
            "as_of": zulu(found.as_of),
        }


def _append(refusal: str, text: str) -> str:
    return f"{refusal.removesuffix('.')}. {text}"


def _sentence(found: Availability) -> str:
    several = len(found.reasons) > 1
    parts = [
        f"{f'Reservation {reason.reservation + 1}: ' if several else ''}{reason.asked} asked for; {reason.message}."
        for reason in found.reasons
    ]
    parts += [f"It fits from {spell(a.window.start)} UTC on." for a in found.alternatives if a.change is Change.TIME]
    return " ".join(parts)
