# SPDX-License-Identifier: Apache-2.0
"""Refused leases and changes: why there was not enough, and what would fit, added to the error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

from blazar.manager.billing.refusals import DearChange
from blazar.manager.changing.new_leases import NewLease
from blazar.manager.search.availability import AvailabilityService
from blazar.manager.search.change_offers import ChangeOffers
from blazar.model.base.clock import later, spell, to_minute, zulu
from blazar.model.base.errors import BlazarError, NotEnoughResources, OthersWait, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.search.availability import (
    Alternative,
    Availability,
    AvailabilityQuestion,
    Change,
    render_alternatives,
    render_reasons,
)

LOG = logging.getLogger(__name__)

FURTHER = timedelta(days=62)
"""How far after a start that a limit denies another one is looked for: in the next month there is another budget."""


Choose = Callable[[Iterable[Alternative]], Iterator[Alternative]]
"""Yields those of what is free that are offered."""


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
    """Explains refusals, if that is ``enabled``, each at a small part of the cost of a question; and tells of them.

    No range is searched that is longer than the ``longest``.
    """

    def __init__(
        self,
        availability: AvailabilityService,
        demand: DemandListener,
        *,
        enabled: bool,
        longest: timedelta,
    ) -> None:
        self._availability = availability
        self._demand = demand
        self._enabled = enabled
        self._longest = longest

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

    @contextmanager
    def explained_lease(self, request: LeaseRequest, *, waits: bool) -> Iterator[None]:
        """Say, where the block refuses a new lease, why there is not enough, and what would be granted.

        One that ``waits`` is not refused if there is not enough.
        """
        asker = Actor(request.user_id, request.project_id, request.operator)
        question = AvailabilityQuestion(
            asker, reservations=request.reservations, start=request.start, end=request.end, limit=1
        )
        try:
            yield
        except NotEnoughResources as error:
            if not waits:
                self._explain(error, question)
            raise
        except UsageDenied as error:
            latest = _look_further(request, self._longest)
            self._offer(error, replace(question, explain=False, latest=latest), partial(_list_cheap, request.max_price))
            raise

    @contextmanager
    def explained_change(self, lease_id: str, change: LeaseChange) -> Iterator[None]:
        """Say, where the block refuses a change of a lease, why there is not enough, and what would be granted."""
        offers = ChangeOffers(lease_id, change, self._availability.try_change)
        try:
            yield
        except NotEnoughResources as error:
            self._explain(error, offers.question, offers.list_granted)
            raise
        except DearChange as error:
            if self._enabled:
                ask = partial(self._ask, moves_others=False)
                _add_offers(error, list(offers.list_affordable(error, ask)), self._availability.now)
            raise
        except UsageDenied as error:
            further = Duration(seconds=int(min(FURTHER, self._longest).total_seconds()))
            self._offer(error, replace(offers.question, explain=False, latest=further), offers.list_granted)
            raise

    def _ask(self, question: AvailabilityQuestion, *, moves_others: bool) -> Availability | None:
        """Return the answer to a question about what was refused; None if it cannot be had."""
        if not self._enabled:
            return None
        try:
            return self._availability.explain(question, moves_others=moves_others)
        except BlazarError as trouble:
            # The refusal stands as it is: what would explain it cannot be read.
            LOG.debug("Refusal is not explained: %s", trouble.message)
            return None

    def _offer(self, error: UsageDenied, question: AvailabilityQuestion, choose: Choose) -> None:
        """Say what our limits would grant that is free."""
        # A bound on the number of leases fits no other one, and a service is not asked what it would grant.
        if "fits" in (error.data or {}) and (found := self._ask(question, moves_others=False)) is not None:
            _add_offers(error, list(choose(found.alternatives)), found.as_of)

    def _explain(self, error: NotEnoughResources, question: AvailabilityQuestion, choose: Choose = iter) -> None:
        # Without a proof others were not asked to leave, as for a lease of another kind.
        found = self._ask(question, moves_others=error.proof is not None)
        if found is None or not found.reasons:
            # Something has changed since: the same request may fit now.
            return
        proof = error.proof
        found = replace(found, alternatives=tuple(choose(found.alternatives)))
        add_sentence(error, " ".join([_sentence(found), *([] if proof is None else [proof.sentence])]))
        error.pointer = found.reasons[0].pointer
        error.data = {
            "reasons": render_reasons(found.reasons),
            "alternatives": render_alternatives(found.alternatives),
            "as_of": zulu(found.as_of),
            **({} if proof is None else {"proof": proof.render()}),
        }


def _look_further(request: LeaseRequest, longest: timedelta) -> datetime | Duration:
    """Return up to when another time is looked for than that which a limit denies."""
    if isinstance(request.start, datetime) and isinstance(request.end, datetime):
        return min(later(request.end, FURTHER), later(request.start, longest))
    return Duration(seconds=int(min(FURTHER, longest).total_seconds()))


def _list_cheap(most: str | None, near: Iterable[Alternative]) -> Iterator[Alternative]:
    """Yield the offers that cost no more than a maximum."""
    for offer in near:
        if most is None or offer.price is None or offer.price.value <= Fraction(most):
            yield offer


def _add_offers(error: UsageDenied, offers: Sequence[Alternative], at: datetime) -> None:
    """Add to a refusal what would be granted, if anything is."""
    if not offers:
        return
    data = error.data or {}
    error.data = {**data, "alternatives": render_alternatives(offers), "as_of": zulu(at)}
    told = [text for one in offers if (text := _tell_offer(one, data["fits"])) is not None]
    if told:
        add_sentence(error, f"What is free and within all limits: {', or '.join(told)}.")


def _tell_offer(offer: Alternative, fits: Mapping[str, Any]) -> str | None:
    """Return what is granted in place of what a limit denies; None if the refusal has told that already."""
    window, counts = offer.window, offer.counts or ()
    match offer.change:
        case Change.TIME if fits.get("start_date") != zulu(window.start):
            return f"a start at {spell(window.start)} UTC"
        case Change.DURATION if fits.get("duration_seconds") is None:
            return f"an end at {spell(to_minute(window.end))} UTC"
        case Change.COUNT if fits.get("amount") is None:
            numbers = [count.get("max", count.get("amount")) for count in counts]
            return f"{' and '.join(map(str, numbers))} instead of more"
    return None


def add_sentence(error: BlazarError, text: str) -> None:
    """Add a sentence to an error, for all who read it."""
    error.message = _append(error.message, text)
    error.args = (error.message,)
    error.public = None if error.public is None else _append(error.public, text)


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
