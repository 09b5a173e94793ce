# SPDX-License-Identifier: Apache-2.0
"""Refused leases and changes: why there was not enough, and what would fit, added to the error."""

from __future__ import annotations

import logging

from blazar.manager.search.availability import AvailabilityService
from blazar.model.base.clock import spell, zulu
from blazar.model.base.errors import BlazarError, NotEnoughResources
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.search.availability import (
    Availability,
    AvailabilityQuestion,
    Change,
    render_alternatives,
    render_reasons,
)

LOG = logging.getLogger(__name__)


class Refusals:
    """Explains refusals, if that is ``enabled``; each at a small part of the cost of a question."""

    def __init__(self, availability: AvailabilityService, *, enabled: bool) -> None:
        self._availability = availability
        self._enabled = enabled

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
