# SPDX-License-Identifier: Apache-2.0
"""References between the reservations of a lease: how they are checked, and what waits for what by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import ordering
from blazar.manager.leases.ordering import Waits, cycle_in
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import NO_CONTENT, Content
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.values import Rank, Reference


@dataclass(frozen=True, slots=True)
class Referrer:
    """A reservation of a lease with its parameters, and the references in them.

    ``pointer`` is where the request has it, None where it does not; ``started``: what it names is tied to it already.
    """

    id: str
    resource_type: str
    references: tuple[Reference, ...]
    pointer: str | None
    parameters: Content = NO_CONTENT
    started: bool = False

    def refused(self, reference: Reference, sentence: str, code: str = "invalid_value") -> InvalidInput:
        """Return the error for one of the references, which says where the request has it."""
        where = reference.pointer.lstrip("/")
        place = None if self.pointer is None else self.pointer + reference.pointer
        return InvalidInput(
            f"{where} names reservation {quote(reference.reservation)}, {sentence}", code=code, at=place
        )


def check_new_references(referrers: Sequence[Referrer]) -> Waits:
    """Return the ids that each reservation of a new lease refers to, where the request has indices. InvalidInput."""
    last = len(referrers) - 1
    sentence = f"and the request has none; give an index from 0 to {last}"
    return _check_all(referrers, dict[str | int, Referrer](enumerate(referrers)), sentence)


def check_changed_references(referrers: Sequence[Referrer]) -> Waits:
    """Return the ids that each reservation of a lease refers to. InvalidInput."""
    by_id: dict[str | int, Referrer] = {referrer.id: referrer for referrer in referrers}
    return _check_all(referrers, by_id, "and the lease has none; give the id of another reservation of this lease")


def waits_at_start(runtime: Runtime, lease: Lease) -> Waits:
    """Return what each reservation of a lease refers to, or is made of: it starts when these are active."""
    found = {r.id: {str(reference.reservation) for reference in runtime.references(r)} for r in lease.reservations}
    for reservation in lease.reservations:
        if reservation.parent in found:
            found[reservation.parent].add(reservation.id)
    return {id_: frozenset(others) for id_, others in found.items()}


def waits_at_end(runtime: Runtime, lease: Lease) -> Waits:
    """Return what each reservation of a lease waits for at the end; types that are not enabled have the usual rank."""
    types = {r.id: runtime.types.get(r.resource_type) for r in lease.reservations}
    ranks = {id_: Rank.COMPUTE if known is None else known.rank for id_, known in types.items()}
    return ordering.waits_at_end(waits_at_start(runtime, lease), ranks)


def _check_all(referrers: Sequence[Referrer], named: Mapping[str | int, Referrer], otherwise: str) -> Waits:
    found: dict[str, dict[str, Reference]] = {referrer.id: {} for referrer in referrers}
    owners: dict[str, Referrer] = {}
    for referrer in referrers:
        for reference in referrer.references:
            referent = named.get(reference.reservation)
            if referent is None:
                raise referrer.refused(reference, otherwise, "unknown_reference")
            if referent is referrer:
                raise referrer.refused(reference, "which is the reservation itself; name another one")
            allowed = reference.resource_types
            if allowed and referent.resource_type not in allowed:
                raise referrer.refused(
                    reference, f"which is of type {referent.resource_type}; name one of type {' or '.join(allowed)}"
                )
            asked_for = referrer.pointer is not None or referent.pointer is not None
            if asked_for and not referrer.started and (why := reference.misfit(referent.parameters)):
                raise referrer.refused(reference, why)
            if reference.exclusive:
                owner = owners.setdefault(referent.id, referrer)
                if owner is not referrer:
                    _check_owned(owner, referrer, reference)
            found[referrer.id][referent.id] = reference
    waits = {id_: frozenset(references) for id_, references in found.items()}
    if cycle := cycle_in(waits):
        _refuse_cycle(cycle, {referrer.id: referrer for referrer in referrers}, found)
    return waits


def _check_owned(owner: Referrer, referrer: Referrer, reference: Reference) -> None:
    """Raise InvalidInput for a request by which two reservations that have not started name what is for one only."""
    asked_for = owner.pointer is not None or referrer.pointer is not None
    if asked_for and not (owner.started and referrer.started):
        raise referrer.refused(reference, "which another reservation names, too; make one for each of them")


def _refuse_cycle(
    cycle: Sequence[str], referrers: Mapping[str, Referrer], found: Mapping[str, Mapping[str, Reference]]
) -> None:
    """Raise InvalidInput at a reference of a cycle that the request has."""
    steps = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    one, other = next((step for step in steps if referrers[step[0]].pointer is not None), steps[0])
    raise referrers[one].refused(
        found[one][other],
        f"which waits for this one by its own references, in a cycle of {len(cycle)}; leave one of these out",
    )
