# SPDX-License-Identifier: Apache-2.0
"""The work on energy: every five minutes one of the managers reads what hosts draw, and each hour the carbon of it.

A source that does not answer leaves a gap, which is rated or estimated where it is read, and is a problem
while it lasts.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from fractions import Fraction

from blazar.clouds.ports.power import PowerRef
from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import TurnWork
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost, CloudError, StoreUnavailable
from blazar.model.base.reasons import spell_count
from blazar.model.base.values import dataclass, field
from blazar.model.energy.book import (
    EnergyReading,
    EnergyTeller,
    HostHour,
    add_readings,
    find_most,
    keep_curve,
    read_milliwatts,
)
from blazar.model.energy.carbon import DAY
from blazar.model.energy.consumption import HOUR
from blazar.model.power.hosts import PoweredHost
from blazar.model.power.states import PowerState
from blazar.model.problems.problems import ProblemKind
from blazar.model.problems.troubles import CloudFinding
from blazar.observe import metrics
from blazar.store.problems.findings import Look

LOG = logging.getLogger(__name__)

EVERY = timedelta(minutes=5)
"""How often hosts are read; a mean of an hour is that of a dozen readings."""

BACK = 24 * HOUR
"""Seconds before now that a service is asked for after an outage."""

LATELY = 900
"""Seconds after which what hosts draw is known where it is kept."""

SPAN = 6 * HOUR
"""Seconds that a service is asked for at a time: what it has told stays, if it tells no more."""

CURVE_BACK, CURVE_AHEAD = 60 * DAY, 7 * DAY
"""Seconds before and after now of which the curve is kept; a month is charged once it is over."""


@dataclass(slots=True)
class _Turn:
    """What is read in a turn: the hours of hosts, by host and hour, those of the curve, and who was asked or is silent.

    ``metered`` is up to which hour Prometheus was asked, ``curved`` the hour in which the curve was read.
    """

    now: datetime
    metered: int | None
    curved: int | None
    hours: dict[tuple[int, int], HostHour] = field(default_factory=dict)
    curve: Mapping[int, Fraction] = field(default_factory=dict)
    asked: list[EnergyTeller] = field(default_factory=list)
    silent: dict[EnergyTeller, str] = field(default_factory=dict)

    @property
    def hour(self) -> int:
        """The hour that is now."""
        seconds = int(self.now.timestamp())
        return seconds - seconds % HOUR

    def add(self, hours: Iterable[HostHour]) -> None:
        """Take hours in the place of what was read of them before."""
        self.hours |= {(one.resource_id, one.hour): one for one in hours}


class EnergyWork(TurnWork):
    """Reads what hosts draw in turn with the other managers. Where nothing is recorded it asks nobody anything."""

    every = EVERY

    def __init__(self, runtime: Runtime) -> None:
        store = runtime.store.energy
        super().__init__("energy", runtime, store, work="What hosts draw cannot be read", retry=60.0)
        self._store = store
        self._metered: int | None = None
        self._curved: int | None = None
        self._silent: frozenset[EnergyTeller] = frozenset()

    def _is_needed(self) -> bool:
        return self._store.terms.records

    def work(self, claimed: datetime, claim: Claim) -> None:
        """Read each source, and record what all of them say, at once. StoreUnavailable."""
        with self._runtime.claims.held(claim), suppress(ClaimLost):
            now = to_second(claimed)
            if now.hour == 0 and now - EVERY < now.replace(minute=0, second=0):
                self._store.drop_old(now=now)
            turn = _Turn(now, self._metered, self._curved)
            self._read_all(turn)
            # To the full five minutes, so that the last reading of an hour is made at its end.
            due_at = now.replace(second=0) + EVERY - timedelta(minutes=now.minute % 5)
            # On record as a whole, or not at all: a turn that is done again, as after a crash, counts once.
            reading = EnergyReading(tuple(turn.hours.values()), turn.curve)
            also = self._runtime.store.findings.make_part(self._look_at(turn))
            self._store.record(claim.token, reading, also, due_at=due_at)
            self._metered, self._curved = turn.metered, turn.curved
            self._tell(turn)

    def _read_all(self, turn: _Turn) -> None:
        hosts = self._runtime.store.power_hosts.all()
        if self._store.terms.asks_adapters:
            self._read(EnergyTeller.ADAPTERS, turn, lambda: self._read_adapters(hosts, turn))
        if self._runtime.meters.enabled:
            self._read(EnergyTeller.PROMETHEUS, turn, lambda: self._read_meters(hosts, turn))
        if self._runtime.carbon.enabled and turn.curved != turn.hour:
            self._read(EnergyTeller.CARBON, turn, lambda: self._read_curve(turn))

    def _read(self, teller: EnergyTeller, turn: _Turn, read: Callable[[], str | None]) -> None:
        """Read a source, which may return why it counts for silent; one that is silent costs the others nothing."""
        turn.asked.append(teller)
        try:
            with scope(limit=self._runtime.settings.poll_limit):
                said = read()
        except StoreUnavailable:
            raise
        except BlazarError as error:
            said = error.message
        if said is not None:
            turn.silent[teller] = said
        metrics.ENERGY_READS.add(teller, "done" if said is None else "failed")

    def _look_at(self, turn: _Turn) -> Look:
        """Return who is silent, as what a look has found; who is not asked any more is not silent."""
        used = {
            EnergyTeller.ADAPTERS: self._store.terms.asks_adapters,
            EnergyTeller.PROMETHEUS: self._runtime.meters.enabled,
            EnergyTeller.CARBON: self._runtime.carbon.enabled,
        }
        found = {
            str(teller): CloudFinding(
                ProblemKind.ENERGY, "", str(teller), str(teller), turn.now, turn.now, detail=detail
            )
            for teller, detail in turn.silent.items()
        }
        types = [str(teller) for teller in EnergyTeller if teller in turn.asked or not used[teller]]
        return Look(ProblemKind.ENERGY, "", turn.now, found, types)

    def _tell(self, turn: _Turn) -> None:
        """Say who has become silent or speaks again: a gap is no reason to write to the log every five minutes."""
        for teller in turn.asked:
            if teller in turn.silent and teller not in self._silent:
                LOG.warning("Energy is not read (%s): %s", teller, turn.silent[teller])
            elif teller in self._silent and teller not in turn.silent:
                LOG.info("Energy is read again (%s)", teller)
        self._silent = (self._silent - frozenset(turn.asked)) | frozenset(turn.silent)
        LOG.debug("Energy was read: %d hours of hosts, %d of the curve", len(turn.hours), len(turn.curve))

    def _read_adapters(self, hosts: Collection[PoweredHost], turn: _Turn) -> str | None:
        """Ask the adapters of hosts, by region; one that fails costs the others nothing."""
        by_region: dict[str, list[PoweredHost]] = defaultdict(list)
        for host in hosts:
            if host.power.address is not None:
                by_region[host.host.region].append(host)
        watts: dict[int, float] = {}
        silent: list[str] = []
        for region, some in by_region.items():
            told, why = self._ask_region(some)
            watts |= told
            if why is not None:
                silent.append(f"region {region}: {why}" if region else why)
        most = {one.host.id: find_most(one.host.capabilities) for one in hosts}
        turn.add(add_readings(self._store.list_hours(turn.hour), watts, turn.hour, most))
        silent += _tell_beyond(sum(value * 1000 > most[id_] for id_, value in watts.items()))
        return "; ".join(silent) or None

    def _ask_region(self, hosts: Collection[PoweredHost]) -> tuple[Mapping[int, float], str | None]:
        """Return the watts of hosts of a region, and why they count for silent; None if they do not."""
        try:
            watts = self._ask_watts(hosts)
        except CloudError as error:
            return {}, error.message
        awake = _count_awake(hosts)
        if awake and not watts:
            return {}, f"none of {spell_count(awake, 'host')} that are on and have an adapter tells its watts"
        return watts, None

    def _ask_watts(self, hosts: Collection[PoweredHost]) -> Mapping[int, float]:
        refs = {
            one.host.external_id: PowerRef(one.host.external_id, one.host.name, one.power.address)
            for one in hosts
            if one.power.address is not None
        }
        ids = {one.host.external_id: one.host.id for one in hosts}
        power = self._runtime.power_of(next(iter(hosts)).host)
        return {ids[id_]: watts for id_, watts in power.power_watts(list(refs.values())).items()}

    def _read_meters(self, hosts: Collection[PoweredHost], turn: _Turn) -> str | None:
        """Ask for the means of this hour, of the one before, and of those that were missed, the oldest first."""
        until = int(turn.now.timestamp())
        # What is on record does not say: adapters may have told these hours.
        last = turn.hour - BACK if turn.metered is None else turn.metered
        since = max(turn.hour - BACK, min(turn.hour - HOUR, last))
        regions = self._select_metered(hosts)
        found: list[HostHour] = []
        beyond: set[int] = set()
        for start in range(since, until, SPAN):
            found = []
            beyond.clear()
            for region, asked in regions.items():
                hours = tuple(self._read_means(region, asked, start, min(until, start + SPAN), beyond))
                turn.add(hours)
                found += hours
            # What was told so far is not asked for again, if the rest is not told in time.
            turn.metered = min(turn.hour, start + SPAN)
        # Of an hour that has just begun there may be nothing yet.
        lately = until - LATELY - (until - LATELY) % HOUR
        told = {one.resource_id for one in found if one.hour >= lately}
        silent = _tell_beyond(len(beyond))
        for region, asked in regions.items():
            awake = _count_awake(asked.values())
            if awake and (told | beyond).isdisjoint(one.host.id for one in asked.values()):
                where = f" in {region}" if region else ""
                silent.append(f"Prometheus has no value of any of {spell_count(awake, 'host')} that are on{where}")
        return "; ".join(silent) or None

    def _select_metered(self, hosts: Collection[PoweredHost]) -> Mapping[str, Mapping[str, PoweredHost]]:
        """Return the hosts that can be asked for, by their region, if the service knows regions, and name."""
        is_by_region = self._runtime.meters.is_by_region
        regions: dict[str, dict[str, list[PoweredHost]]] = defaultdict(lambda: defaultdict(list))
        for one in hosts:
            regions[one.host.region if is_by_region else ""][one.host.name].append(one)
        # Of hosts that it knows by one name nobody knows whose values they are.
        return {
            region: {name: some[0] for name, some in named.items() if len(some) == 1}
            for region, named in regions.items()
        }

    def _read_means(
        self, region: str, asked: Mapping[str, PoweredHost], since: int, until: int, beyond: set[int]
    ) -> Iterator[HostHour]:
        """Yield the hours of hosts, by their names, that the service tells of a span.

        Those of which the last that it tells is more than they can draw are added to ``beyond``.
        """
        means = self._runtime.meters.read_means(list(asked), since, until, region)
        for name, hours in means.items():
            host = asked[name].host
            most = find_most(host.capabilities)
            told = {at: watts for at, watts in hours.items() if since <= at < since + SPAN}
            for at, watts in told.items():
                if (milliwatts := read_milliwatts(watts, most)) is not None:
                    yield HostHour(host.id, at, milliwatts, 1)
            if told and told[max(told)] * 1000 > most:
                beyond.add(host.id)

    def _read_curve(self, turn: _Turn) -> str | None:
        curve = self._runtime.carbon.fetch_curve()
        if curve is None:
            return None
        at = int(turn.now.timestamp())
        since, until = turn.hour - CURVE_BACK, turn.hour + CURVE_AHEAD
        known = self._store.read_curve(since, until)
        turn.curve = keep_curve(curve.values, known, now=at, since=since, until=until)
        turn.curved = turn.hour
        return curve.explain_gap(at)


def _count_awake(hosts: Iterable[PoweredHost]) -> int:
    return sum(one.power.state is PowerState.ON for one in hosts)


def _tell_beyond(hosts: int) -> list[str]:
    """Return what is said of hosts of which more is told than they can draw."""
    many = spell_count(hosts, "host")
    return [f"what is told of {many} is more than can be drawn there; it must be in watts"] if hosts else []
