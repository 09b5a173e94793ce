# SPDX-License-Identifier: Apache-2.0
"""How many hosts are in use over time: where that alone proves that nothing has room, nothing is searched for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from blazar.calendar.curves import NOTHING, Curve, PromisedCurves
from blazar.calendar.fits import NEVER
from blazar.calendar.kept import KeptResource
from blazar.calendar.maintenance import Span
from blazar.calendar.repack.values import FullAt
from blazar.model.base.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class HostsInUse:
    """How many of ``hosts``, all that anybody may get, are in use, which moves do not change.

    For what is on a host at an instant needs one of them to itself, whichever that is.
    """

    hosts: frozenset[int]
    promised: PromisedCurves

    @classmethod
    def of(cls, hosts: Iterable[int]) -> HostsInUse:
        """Build from hosts, none of them in use."""
        counted = dict.fromkeys(hosts, ((), 1))
        return cls(frozenset(counted), PromisedCurves(None, counted))

    def follow(self, resources: Mapping[int, KeptResource]) -> HostsInUse:
        """Return it with what is promised of resources; it costs no more than what has changed."""
        return replace(self, promised=self.promised.follow(self.promised.counted, resources))

    @property
    def _curve(self) -> Curve:
        return self.promised.curves.get((), NOTHING)

    def find_full(self, span: Span, asked: int) -> FullAt | None:
        """Return the first instant of a span at which fewer are free than are asked for; None if there is none."""
        start, end = span
        curve = self._curve
        for at in (start, *curve.list_instants(start + 1, end)):
            promised = curve.at(at)
            if promised + asked > len(self.hosts):
                return FullAt(at, self.hosts, promised, asked)
        return None

    def find_room(self, after: int, asked: int) -> int | None:
        """Return the first instant after another one at which so many are free; None if there is none."""
        curve = self._curve
        instants = curve.list_instants(after + 1, NEVER)
        return next((at for at in instants if curve.at(at) + asked <= len(self.hosts)), None)

    def count_asked(self, count: int, pinned: Set[int]) -> int:
        """Return how many of the hosts are needed at least for ``count`` hosts with those that are ``pinned``."""
        return max(0, count - len(pinned - self.hosts))
