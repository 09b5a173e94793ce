# SPDX-License-Identifier: Apache-2.0
"""Which hosts are in which aggregate: idempotent changes of the members of one aggregate."""

from __future__ import annotations

import logging
import threading

from blazar.clouds.ports.compute import Aggregate, AggregateList, Compute
from blazar.model.base.errors import Conflict, NotFound
from blazar.model.base.values import dataclass

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AggregateNames:
    """Names shared with operators, the scheduler filter and other tools; defaults as in ``blazar.conf``."""

    freepool: str = "freepool"
    zone_prefix: str = "blazar_"
    owner_key: str = "blazar:owner"


class AggregateMembership:
    """Adds hosts to aggregates and removes them, whatever earlier attempts and other managers have done."""

    def __init__(self, compute: Compute, names: AggregateNames) -> None:
        self._compute = compute
        self._names = names
        # Nova tells its schedulers the whole list of an aggregate: of two changes at once, the last may lack the other.
        self._one_at_a_time = threading.Lock()

    def is_ours(self, aggregate: Aggregate) -> bool:
        """Return whether an aggregate is the freepool, or that of a host reservation."""
        zone = aggregate.availability_zone or ""
        return aggregate.name == self._names.freepool or zone.startswith(self._names.zone_prefix)

    def ours_with(self, host: str, aggregates: AggregateList) -> list[Aggregate]:
        """Return which of these have a host and are the freepool, or that of a host reservation."""
        return [aggregate for aggregate in aggregates.with_host(host) if self.is_ours(aggregate)]

    def freepool(self, aggregates: AggregateList) -> Aggregate:
        """Return the freepool among these; NotFound, with the remedy, if there is none."""
        aggregate = aggregates.named(self._names.freepool)
        if aggregate is None:
            raise NotFound(
                f"the cloud has no host aggregate named {self._names.freepool!r}; create it (without an availability "
                f"zone), or name yours in [nova] aggregate_freepool_name"
            )
        return aggregate

    def add_host(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that a host is in an aggregate."""
        try:
            with self._one_at_a_time:
                self._compute.add_host(aggregate.id, host)
        except Conflict:
            # Already in it, by an earlier attempt whose response was lost or another manager. Other conflicts stand.
            if not self._is_in(aggregate, host):
                raise

    def add_host_if_known(self, aggregate: Aggregate, host: str) -> None:
        """Add a host unless Nova no longer knows it, so that an end that has begun can finish."""
        try:
            self.add_host(aggregate, host)
        except NotFound as error:
            if self._is_known(host):
                raise
            LOG.warning(
                "Host %s is unknown to Nova and not added to aggregate %s: %s", host, aggregate.name, error.message
            )

    def remove_host(self, aggregate: Aggregate, host: str) -> None:
        """Ensure that a host is not in an aggregate."""
        try:
            with self._one_at_a_time:
                self._compute.remove_host(aggregate.id, host)
        except NotFound:
            if self._is_in(aggregate, host):
                raise

    def remove_host_if_known(self, aggregate: Aggregate, host: str) -> bool:
        """Remove a host; return False for one that Nova no longer knows, which it can neither use nor remove."""
        try:
            self.remove_host(aggregate, host)
        except NotFound as error:
            if self._is_known(host):
                raise
            LOG.warning("Host %s is unknown to Nova and stays in aggregate %s: %s", host, aggregate.name, error.message)
            return False
        return True

    def return_host(self, host: str, *, aggregate: Aggregate, freepool: Aggregate) -> bool:
        """Move a host to the freepool; return False for one that Nova no longer knows."""
        if host not in freepool.hosts:
            self.add_host_if_known(freepool, host)
        # Nova also refuses if a server was booted in between; the host stays in both until that is gone.
        return self.remove_host_if_known(aggregate, host)

    def delete_aggregate(self, aggregate: Aggregate) -> None:
        """Ensure that an aggregate is gone."""
        try:
            self._compute.delete_aggregate(aggregate.id)
        except NotFound:
            return

    def _is_known(self, host: str) -> bool:
        return any(hypervisor.service_name == host for hypervisor in self._compute.hypervisors())

    def _is_in(self, aggregate: Aggregate, host: str) -> bool:
        return any(a.id == aggregate.id and host in a.hosts for a in self._compute.aggregates())
