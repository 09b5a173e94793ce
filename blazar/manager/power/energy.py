# SPDX-License-Identifier: Apache-2.0
"""The work on energy: every five minutes one of the managers reads what hosts draw, and each hour the carbon of it.

A source that does not answer leaves a gap, which is rated or estimated where it is read.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from blazar.clouds.ports.power import PowerRef
from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost, CloudError
from blazar.model.base.log_lines import log_level
from blazar.model.energy.book import HostHour, add_readings, keep_curve, read_milliwatts
from blazar.model.energy.carbon import DAY
from blazar.model.energy.consumption import HOUR
from blazar.model.power.hosts import PoweredHost
from blazar.observe import metrics

LOG = logging.getLogger(__name__)

EVERY = timedelta(minutes=5)
"""How often hosts are read; a mean of an hour is that of a dozen readings."""

BACK = 24 * HOUR
"""Seconds before now that a service is asked for after an outage."""

CURVE_BACK, CURVE_AHEAD = 60 * DAY, 7 * DAY
"""Seconds before and after now of which the curve is kept; a month is charged once it is over."""


class EnergyWork(DueWork[datetime, datetime]):
    """Reads what hosts draw in turn with the other managers. Where nothing is recorded it asks nobody anything."""

    shortest = 1.0

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("energy", runtime, work="What hosts draw cannot be read", retry=60.0)
        self._store = runtime.store.energy
        self._hour_of_curve: int | None = None
        self._metered_hour: int | None = None
        self._silent: set[str] = set()

    def _due(self) -> Iterable[datetime]:
        if not self._store.terms.records:
            return ()
        now, due_at = self._runtime.clock.now(), self._store.next_turn()
        return (now,) if due_at is None or due_at <= now else ()

    def _next_due(self) -> datetime | None:
        return self._store.next_turn() if self._store.terms.records else None

    def _claim(self, due: datetime, claim: Claim) -> datetime | None:
        until = self._runtime.claims.begin(claim)
        return due if self._store.claim_turn(claim.token, now=due, until=until) else None

    def work(self, claimed: datetime, claim: Claim) -> None:
        """Read each source, and record what it says. StoreUnavailable."""
        with self._runtime.claims.held(claim), suppress(ClaimLost):
            now = to_second(claimed)
            hosts = self._runtime.store.power_hosts.all()
            if self._store.terms.asks_adapters:
                self._read("adapters", lambda: self._read_adapters(hosts, now, claim))
            if self._runtime.meters.enabled:
                self._read("prometheus", lambda: self._read_meters(hosts, now, claim))
            hour = _hour_of(now)
            if self._runtime.carbon.enabled and self._hour_of_curve != hour:
                self._read("carbon", lambda: self._read_curve(now, claim))
            if now.hour == 0 and now - EVERY < now.replace(minute=0, second=0):
                self._store.drop_old(now=now)
            # To the full five minutes, so that the last reading of an hour is made at its end.
            due_at = now.replace(second=0) + EVERY - timedelta(minutes=now.minute % 5)
            self._store.release_turn(claim.token, due_at=due_at)

    def _read(self, source: str, read: Callable[[], int]) -> None:
        """Read a source; one that does not answer costs the others nothing."""
        try:
            with scope(limit=self._runtime.settings.poll_limit):
                number = read()
        except ClaimLost:
            raise
        except BlazarError as error:
            metrics.ENERGY_READS.add(source, "failed")
            # Once for each outage: a gap is no reason to write to the log every five minutes.
            if source not in self._silent:
                LOG.log(log_level(error, logging.WARNING), "Energy is not read (%s): %s", source, error.message)
            self._silent.add(source)
            return
        metrics.ENERGY_READS.add(source, "done")
        if source in self._silent:
            LOG.info("Energy is read again (%s)", source)
            self._silent.discard(source)
        LOG.debug("Energy was read (%s): %s values", source, number)

    def _read_adapters(self, hosts: Collection[PoweredHost], now: datetime, claim: Claim) -> int:
        """Ask the adapters of hosts, by region; one that fails costs the others nothing."""
        by_region: dict[str, list[PoweredHost]] = defaultdict(list)
        for host in hosts:
            if host.power.address is not None:
                by_region[host.host.region].append(host)
        watts: dict[int, float] = {}
        for some in by_region.values():
            with suppress(CloudError):
                watts |= self._ask_watts(some)
        hour = _hour_of(now)
        found = add_readings(self._store.list_hours(hour), watts, hour)
        self._store.write_hours(claim.token, found)
        return len(found)

    def _ask_watts(self, hosts: Collection[PoweredHost]) -> Mapping[int, float]:
        refs = {
            one.host.external_id: PowerRef(one.host.external_id, one.host.name, one.power.address)
            for one in hosts
            if one.power.address is not None
        }
        ids = {one.host.external_id: one.host.id for one in hosts}
        power = self._runtime.power_of(next(iter(hosts)).host)
        return {ids[id_]: watts for id_, watts in power.power_watts(list(refs.values())).items()}

    def _read_meters(self, hosts: Collection[PoweredHost], now: datetime, claim: Claim) -> int:
        """Ask for the means of this hour, of the one before, and of those that were missed."""
        hour, until = _hour_of(now), int(now.timestamp())
        # What is on record does not say: adapters may have told these hours.
        last = self._metered_hour
        since = max(hour - BACK, min(hour - HOUR, hour - BACK if last is None else last))
        ids = {one.host.name: one.host.id for one in hosts}
        means = self._runtime.meters.read_means(list(ids), since, until)
        found = [
            HostHour(ids[name], at, milliwatts, 1)
            for name, hours in means.items()
            for at, watts in hours.items()
            if since <= at <= hour and (milliwatts := read_milliwatts(watts)) is not None
        ]
        self._store.write_hours(claim.token, found)
        self._metered_hour = hour
        return len(found)

    def _read_curve(self, now: datetime, claim: Claim) -> int:
        curve = self._runtime.carbon.fetch_curve()
        if curve is None:
            return 0
        at, hour = int(now.timestamp()), _hour_of(now)
        since, until = hour - CURVE_BACK, hour + CURVE_AHEAD
        known = self._store.read_curve(since, until)
        new = keep_curve(curve.values, known, now=at, since=since, until=until)
        if new:
            self._store.write_curve(claim.token, new)
        self._hour_of_curve = hour
        return len(new)


def _hour_of(now: datetime) -> int:
    seconds = int(now.timestamp())
    return seconds - seconds % HOUR
