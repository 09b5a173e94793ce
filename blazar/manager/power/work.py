# SPDX-License-Identifier: Apache-2.0
"""The work on power: once a minute one of the managers plans which hosts sleep, and has others switch them.

In a dry run no host is touched: what would be done is written down. The cloud is only asked whether servers run on what
would be switched off. Where nothing is to sleep any more, what sleeps is woken.
"""

from __future__ import annotations

import logging
from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from blazar.calendar.power import STEP, PowerPlan, plan, rehearse_plan, rehearse_time
from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import TurnWork
from blazar.manager.common.runtime import Runtime
from blazar.manager.power.steps import HANDS_OFF, LEFT_ALONE
from blazar.model.base.errors import CloudError
from blazar.model.base.reasons import spell_count
from blazar.model.power.classes import POWERED
from blazar.model.power.hosts import PowerSums
from blazar.model.power.learning import HOUR
from blazar.model.power.settings import DAY, PowerMode, PowerSettings
from blazar.model.power.states import HostPower, PowerReason, PowerState
from blazar.model.resources.resource import Resource, ResourceKind, noun
from blazar.observe import metrics
from blazar.resources.contract.kind import Kind
from blazar.store.power.rows import PowerMove
from blazar.store.power.states import PowerView

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")


def title(resource: Resource) -> str:
    """Return what sleeps as a sentence begins with it: ``Host node-1``."""
    return f"{noun(resource.kind).capitalize()} {resource.name}"


def count_moves(hosts: Iterable[HostPower]) -> None:
    """Tell metrics which states hosts have come into."""
    for host in hosts:
        metrics.POWER_MOVES.add(host.state, host.reason)


class PowerWork(TurnWork):
    """Plans power in turn with the other managers."""

    every = STEP

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        store = runtime.store.power
        super().__init__("power", runtime, store, work="Power cannot be planned", retry=STEP.total_seconds() / 4)
        self._store = store
        self._kinds = {kind: kinds[kind] for kind in POWERED if kind in kinds}
        # Until when hosts stay on that run servers beside leases. Other managers find that out for themselves.
        self._occupied: dict[int, datetime] = {}

    def _is_needed(self) -> bool:
        """Return whether hosts are to sleep, or some still do, though none is to."""
        return self._runtime.settings.power.mode is not PowerMode.OFF or self._store.has_sleepers()

    def work(self, claimed: datetime, claim: Claim) -> None:
        """Plan, and have done or written down what follows. StoreUnavailable."""
        self._take_turn(claimed, claim, self._progress, "Power was not planned")

    def _progress(self, now: datetime, claim: Claim) -> None:
        mode = self._runtime.settings.power.mode
        if now.minute == 0:
            self._store.drop_old(now=now)
        if mode is PowerMode.ON:
            self._switch(now, claim)
            return
        if self._store.has_sleepers():
            self._wake_all(now, claim)
        if mode is PowerMode.DRY_RUN:
            self._rehearse(now, claim)

    def _switch(self, now: datetime, claim: Claim) -> None:
        """Plan, and write the first moves of the hosts that are to be switched."""
        view = self._read_view(now, rehearsed=False)
        hosts = {host.resource_id: host for host in self._leave_alone(view.hosts, now)}
        woken = self._find_awake(hosts.values(), view, now)
        asleep = [host for id_, host in hosts.items() if id_ not in woken]
        found = plan(now, view.outlooks, [*asleep, *woken.values()], view.log, self._learn(view, now))
        after = {**rehearse_plan(self._drop_occupied(found, view, now), hosts, now), **woken}
        moves = [PowerMove(hosts[id_], host) for id_, host in after.items()]
        begun = [move.after for move in self._store.begin_moves(claim.token, moves, view.generations, due_at=now)]
        count_moves(begun)
        for host in begun:
            LOG.info("%s is %s (%s)", title(view.resources[host.resource_id]), host.state, host.reason)

    def _read_view(self, now: datetime, *, rehearsed: bool) -> PowerView:
        """Return what a plan is made of, of the kinds that are enabled."""
        view = self._store.read_view(now, self._runtime.settings.power.class_by, rehearsed=rehearsed)
        hosts = tuple(host for host in view.hosts if view.resources[host.resource_id].kind in self._kinds)
        return replace(view, hosts=hosts)

    def _find_awake(self, hosts: Iterable[HostPower], view: PowerView, now: datetime) -> Mapping[int, HostPower]:
        """Return, in their next state, the hosts that should sleep and that somebody else has switched on."""
        asleep = {host.resource_id: host for host in hosts if host.state is PowerState.OFF}
        if not asleep:
            return {}
        unknown = "It is not known whether somebody has switched on hosts that sleep"
        awake = frozenset().union(
            *self._ask_regions(
                [view.resources[id_] for id_ in asleep], lambda kind, some: kind.list_awake(some), unknown
            )
        )
        return {
            id_: replace(host.move(PowerState.WAKING, PowerReason.EXTERNAL, now), kept_until=now + HANDS_OFF)
            for id_, host in asleep.items()
            if id_ in awake
        }

    def _wake_all(self, now: datetime, claim: Claim) -> None:
        """Have hosts woken that sleep since nothing is to sleep any more, as many in a minute as are ever switched."""
        hosts = self._store.read_hosts_power(now).values()
        asleep = [host for host in hosts if host.state is PowerState.OFF][: self._runtime.settings.power.ramp]
        moves = [PowerMove(host, host.move(PowerState.WAKING, PowerReason.OPERATOR, now)) for host in asleep]
        woken = [move.after for move in self._store.begin_moves(claim.token, moves, {}, due_at=now)]
        count_moves(woken)
        if woken:
            LOG.info("%d hosts that sleep are woken, as none is to sleep any more", len(woken))

    def _rehearse(self, now: datetime, claim: Claim) -> None:
        view = self._read_view(now, rehearsed=True)
        before = {host.resource_id: host for host in view.hosts}
        passed = rehearse_time(view.hosts, view.outlooks, now)
        moves = [PowerMove(before[id_], after) for id_, after in passed.items()]
        hosts = self._leave_alone({**before, **passed}.values(), now)
        found = plan(now, view.outlooks, hosts, view.log, self._learn(view, now))
        found = self._drop_occupied(found, view, now)
        after = rehearse_plan(found, {host.resource_id: host for host in hosts}, now)
        # A host that has just passed to another state has two moves, the later one last.
        moves += [PowerMove(passed.get(id_, before[id_]), host) for id_, host in after.items()]
        self._store.move(claim.token, moves, rehearsed=True)
        if now.minute == 0:
            self._tell({**before, **passed, **after}, view.resources, now)

    def _leave_alone(self, hosts: Iterable[HostPower], now: datetime) -> list[HostPower]:
        """Return hosts; those on which servers were found stay on for a while."""
        self._occupied = {id_: until for id_, until in self._occupied.items() if until > now}
        return [
            replace(host, kept_until=max(host.kept_until or now, until))
            if (until := self._occupied.get(host.resource_id)) is not None
            else host
            for host in hosts
        ]

    def _drop_occupied(self, found: PowerPlan, view: PowerView, now: datetime) -> PowerPlan:
        """Return a plan without the hosts that run servers, as preemptible ones, or of which that is not known."""
        if not found.off:
            return found
        resources = [view.resources[id_] for id_ in found.off]
        unknown = "Hosts are not switched off, as it is not known whether servers run there"
        answers = self._ask_regions(resources, lambda kind, some: kind.occupants(some), unknown)
        counts = dict(ChainMap(*map(dict, answers)))
        occupied = {id_ for id_ in found.off if counts.get(id_, 0)}
        self._occupied |= dict.fromkeys(occupied, now + LEFT_ALONE)
        return replace(found, off=tuple(id_ for id_ in found.off if counts.get(id_) == 0))

    def _ask_regions(
        self, resources: Collection[Resource], ask: Callable[[Kind, Collection[Resource]], Answer], unknown: str
    ) -> list[Answer]:
        """Return what each region says of its hosts and pools; one that does not answer costs the others nothing."""
        parts: dict[tuple[ResourceKind, str], list[Resource]] = defaultdict(list)
        for resource in resources:
            parts[resource.kind, resource.region].append(resource)
        answers = []
        for (kind, _), some in parts.items():
            try:
                with scope(limit=self._runtime.settings.poll_limit):
                    answers.append(ask(self._kinds[kind], some))
            except CloudError as error:
                LOG.info("%s: %s", unknown, error.message)
        return answers

    def _learn(self, view: PowerView, now: datetime) -> PowerSettings:
        """Return the settings with the lead and the spare of each class, which are learned again each hour."""
        seen = {host.resource_id: host.group for host in view.hosts}
        return replace(self._runtime.settings.power, classes=self._runtime.learned_power(now, seen).classes)

    def _tell(self, hosts: Mapping[int, HostPower], resources: Mapping[int, Resource], now: datetime) -> None:
        """Say once an hour what a dry run would have done, of hosts and of pools."""
        sums = self._runtime.store.power_hosts.sum_log(now - DAY)
        for kind in self._kinds:
            states = [host.state for id_, host in hosts.items() if resources[id_].kind == kind]
            if not states:
                continue
            day = sums.get((kind, True), PowerSums())
            LOG.info(
                "Power, dry run: %d of %s would sleep now; within a day they would have been switched off %d times, "
                "those that were woken had slept for %d hours together, and %d would not have been awake at a start",
                states.count(PowerState.OFF),
                spell_count(len(states), noun(kind)),
                day.switched_off,
                day.slept / HOUR,
                day.missed,
            )
