# SPDX-License-Identifier: Apache-2.0
"""Limits on what a project has, so that no member can fill the cloud, and how refusals state them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from blazar.model.base.errors import UsageDenied
from blazar.model.base.service_info import StatedLimit
from blazar.model.base.values import dataclass, field
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.spending import SpendExcess, spell_down, spell_month, spell_up
from blazar.model.use.resource_hours import SpendLimit

Fits = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit by its name, with its ``value`` and what is ``used`` of it besides what is ``requested``.

    All three are in the unit that ``measure`` names: ``seconds``, ``leases``, ``reservations``, or a measure of
    resources such as ``host``; those of a budget are hours of it, rounded up. Those of money are decimals of the
    currency that it names. ``fits`` is what would be granted
    instead, each by itself: an ``amount``, a ``duration_seconds``, other dates (``start_date`` and ``end_date``, one
    alone where only that has to change), or the same at a later time (``retry_at``).
    """

    limit: str
    measure: str
    value: int | str
    requested: int | str
    used: int | str = 0
    fits: Fits = field(default_factory=dict)

    def make_denial(self, message: str, *, at: str | None = None) -> UsageDenied:
        """Return the refusal with this sentence."""
        data = {
            "limit": self.limit,
            "measure": self.measure,
            "value": self.value,
            "used": self.used,
            "requested": self.requested,
            "fits": dict(self.fits),
        }
        return UsageDenied(message, at=at, data=data)


@dataclass(frozen=True, slots=True)
class Growth:
    """By how much a project would have to pay more than it may, if leases were changed."""

    limit: SpendLimit
    excess: SpendExcess
    prices: PriceList


RAISE_LIMIT = "your operator to raise the limit"
"""Whom to ask where nothing at all is allowed: neither less nor another time would do."""


class GrowthDenied(UsageDenied):
    """The refusal of a change of leases by which a project would have to pay more than it may."""

    def __init__(self, message: str, *, data: Mapping[str, Any], growth: Growth) -> None:
        super().__init__(message, data=data)
        self.growth = growth


def refuse_growth(growth: Growth, fits: Fits | None = None, told: Sequence[str] = ()) -> GrowthDenied:
    """Return the refusal of a change of leases by which a project would have to pay more than it may.

    ``fits`` is what would be granted instead, ``told`` the same in words.
    """
    limit, excess = growth.limit, growth.excess
    currency, decimals = growth.prices.currency, growth.prices.decimals
    most, taken, left = (
        spell_down(limit.nano, decimals),
        spell_up(excess.taken, decimals),
        spell_down(excess.left, decimals),
    )
    used = spell_up(max(0, limit.nano - excess.left), decimals)
    advice = ", ".join([*(told or ["for less"]), "or for another time"]) if limit.nano else RAISE_LIMIT
    denial = Exceeded(limit.name, currency, most, taken, used, fits or {}).make_denial(
        f"reservations, start_date, end_date: the project would have to pay {taken} {currency} more for "
        f"{spell_month(excess.month)}, and of the {most} that it has for a month ({limit.name}) {left} are left; ask "
        f"{advice}"
    )
    return GrowthDenied(denial.message, data=denial.data or {}, growth=growth)


LAPSES_COUNT = timedelta(hours=24)
"""How long a lease counts that nobody has confirmed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The maximum of leases of a project, reservations of a lease and reservations of a project; None: no limit.

    A lease counts until it has ended or is deleted, with or without reservations. ``lapsed`` are leases of a project
    that nobody has confirmed within ``LAPSES_COUNT``.
    """

    leases: int | None = None
    reservations_of_lease: int | None = None
    reservations: int | None = None
    lapsed: int | None = None

    @property
    def depends_on_project(self) -> bool:
        """Return whether a limit depends on the other leases of the project."""
        return self.leases is not None or self.reservations is not None

    def list_set_limits(self) -> tuple[StatedLimit, ...]:
        """Return the limits that are set, by the names of their options."""
        named = {
            "leases_per_project": (self.leases, "leases"),
            "reservations_per_lease": (self.reservations_of_lease, "reservations"),
            "reservations_per_project": (self.reservations, "reservations"),
            "lapsed_per_project": (self.lapsed, "leases"),
        }
        return tuple(StatedLimit(name, most, unit) for name, (most, unit) in named.items() if most is not None)

    def refusals(self, leases: int, reservations: int, *, more: int) -> tuple[UsageDenied, ...]:
        """Return all that these limits object to in a new lease, as both checks do."""
        project = partial(self.check_project, leases, reservations, more=more)
        return tuple(_collect_denials(partial(self.check_lease, more), project))

    def check_lease(self, reservations: int) -> None:
        """Raise UsageDenied if a lease has too many reservations."""
        if self.reservations_of_lease is not None and reservations > self.reservations_of_lease:
            exceeded = _make_exceeded("reservations_per_lease", self.reservations_of_lease, 0, reservations)
            raise exceeded.make_denial(
                f"reservations: the lease would have {reservations} reservations; the limit is "
                f"{self.reservations_of_lease} (reservations_per_lease); ask for several servers, hosts or addresses "
                "in one reservation, or create several leases",
                at="/reservations",
            )

    def check_project(self, leases: int, reservations: int, *, more: int) -> None:
        """Raise UsageDenied if a project with these counts cannot have another lease with ``more`` reservations."""
        if self.leases is not None and leases >= self.leases:
            raise _make_exceeded("leases_per_project", self.leases, leases, 1).make_denial(
                f"the project has {leases} leases that have not ended; the limit is {self.leases} "
                "(leases_per_project); delete one, or wait until one ends"
            )
        if self.reservations is not None and more and reservations + more > self.reservations:
            raise _make_exceeded("reservations_per_project", self.reservations, reservations, more).make_denial(
                f"reservations: the project has {reservations} reservations in leases that have not ended, and the "
                f"lease would add {more}; the limit is {self.reservations} (reservations_per_project); delete a lease, "
                "or wait until one ends",
                at="/reservations",
            )

    def check_lapsed(self, lapsed: int) -> None:
        """Raise UsageDenied if a project has left so many leases unconfirmed that it can have no more of them."""
        if self.lapsed is not None and lapsed >= self.lapsed:
            raise _make_exceeded("lapsed_per_project", self.lapsed, lapsed, 1).make_denial(
                f"confirm_within: nobody has confirmed {lapsed} leases of the project within a day; the limit is "
                f"{self.lapsed} (lapsed_per_project); book without confirm_within, or wait",
                at="/confirm_within",
            )


def _collect_denials(*checks: Callable[[], None]) -> Iterator[UsageDenied]:
    for check in checks:
        try:
            check()
        except UsageDenied as error:
            yield error


def _make_exceeded(limit: str, value: int, used: int, requested: int) -> Exceeded:
    left = max(0, value - used)
    measure = limit.partition("_")[0]
    return Exceeded(limit, measure, value, requested, used, {"amount": left} if left else {})
