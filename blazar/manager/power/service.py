# SPDX-License-Identifier: Apache-2.0
"""The requests of operators about the power of hosts: what sleeps and why, by what it is switched, and wakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.resource_lists import page_of
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import InvalidInput, WrongState, query_field
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.paging import Page
from blazar.model.power.addresses import check_adapter
from blazar.model.power.classes import find_group, find_values
from blazar.model.power.hosts import (
    WOKEN_FOR,
    ClassReport,
    PoolReport,
    PowerChange,
    PoweredHost,
    PowerLogPage,
    PowerPage,
    PowerQuestion,
    PowerReport,
    PowerSums,
    StateCount,
)
from blazar.model.power.settings import DEFAULT_CLASS, PowerMode, PowerPolicy
from blazar.model.power.states import HostPower, PowerState
from blazar.model.resources.resource import HOST, VOLUME, ResourceKind, noun
from blazar.observe import metrics
from blazar.resources.contract.kind import Kind

USUAL = Duration(days=30, backward=True)
"""How far back is summed up, if nothing else is asked for."""


class PowerService:
    """Answers requests about the power of hosts and pools."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._runtime = runtime
        self._kinds = kinds
        self._store = runtime.store.power_hosts

    def report(self, since: Moment | Duration | None = None) -> PowerReport:
        """Return what sleeps now, and what that has saved since a moment, by default 30 days ago; five statements.

        Once an hour four more, for what is learned of classes. InvalidInput if that is to come.
        """
        now = to_second(self._runtime.clock.now())
        begin = _read_since(since, now)
        hosts, sums = self._store.all(), self._store.sum_log(begin)
        powers = [found.power for found in hosts]
        rehearsed = [found.rehearsed for found in hosts if found.rehearsed is not None]
        return PowerReport(
            self._runtime.settings.power.mode,
            now,
            begin,
            switched=sum(power.address is not None for power in powers),
            kept=sum(power.policy is PowerPolicy.KEEP for power in powers),
            hosts=_count(powers),
            rehearsed_hosts=_count(rehearsed),
            sums=_add_lasting(sums.get((HOST, False), PowerSums()), powers, begin, now),
            rehearsed_sums=_add_lasting(sums.get((HOST, True), PowerSums()), rehearsed, begin, now),
            classes=self._list_classes(hosts, now),
            pools=self._report_pools(sums, begin, now),
        )

    def _report_pools(self, sums: Mapping[tuple[str, bool], PowerSums], begin: datetime, now: datetime) -> PoolReport:
        """Return what sleeps of the pools; in a dry run what would."""
        pools = self._store.all(VOLUME)
        is_rehearsed = self._runtime.settings.power.mode is PowerMode.DRY_RUN
        powers = [found.rehearsed if is_rehearsed and found.rehearsed is not None else found.power for found in pools]
        return PoolReport(
            sum(found.power.address is not None for found in pools),
            sum(found.power.policy is PowerPolicy.KEEP for found in pools),
            sum(power.state is PowerState.OFF for power in powers),
            _add_lasting(sums.get((VOLUME, is_rehearsed), PowerSums()), powers, begin, now),
        )

    def _list_classes(self, hosts: Collection[PoweredHost], now: datetime) -> tuple[ClassReport, ...]:
        """Return the classes of hosts by their values, the largest first."""
        class_by = self._runtime.settings.power.class_by
        members: dict[str, list[PoweredHost]] = defaultdict(list)
        for host in hosts:
            members[find_group(host.host, class_by)].append(host)
        seen = {host.host.id: group for group, found in members.items() for host in found}
        limits = self._runtime.learned_power(now, seen).classes
        found = (
            ClassReport(
                find_values(mine[0].host, class_by),
                len(mine),
                sum((one.rehearsed or one.power).state is PowerState.OFF for one in mine),
                limits.get(group, DEFAULT_CLASS),
            )
            for group, mine in sorted(members.items())
        )
        return tuple(sorted(found, key=lambda one: -one.hosts))

    def page(self, question: PowerQuestion, kind: ResourceKind = HOST) -> PowerPage:
        """Return a page of the registered hosts, or pools, with their power, by name; two statements. InvalidInput."""
        found = [host for host in self._store.all(kind) if question.matches(host)]
        shown, following = page_of(found, question.page, value_of=lambda one: one.host.name, id_of=_id_of)
        return PowerPage(tuple(shown), following, len(found) if question.page.with_count else None)

    def one(self, host_id: str, kind: ResourceKind = HOST) -> PoweredHost:
        """Return a host, or a pool, with its power; NotFound."""
        return self._store.one(host_id, kind)

    def change(self, host_id: str, change: PowerChange, kind: ResourceKind = HOST) -> PoweredHost:
        """Change by what a host is switched, and whether it ever is. NotFound, InvalidInput, Conflict, WrongState."""
        if change.address is not None:
            host = self._runtime.store.resources.one(kind, host_id)
            check_adapter(kind, change.address.adapter)
            self._runtime.power_of(host).check_address(change.address)
            if kind in self._kinds:
                self._kinds[kind].check_switch(host)
        return self._store.change(host_id, change, kind, at=to_second(self._runtime.clock.now()))

    def wake(self, host_id: str, kind: ResourceKind = HOST) -> PoweredHost:
        """Have a host on for some hours, whether it sleeps or not. NotFound; WrongState if nothing switches hosts."""
        mode = self._runtime.settings.power.mode
        if mode is not PowerMode.ON:
            raise WrongState(
                f"{noun(kind)}s are not switched here: [power] mode is {mode} in blazar.conf; have it set to on, or "
                f"switch the {noun(kind)} yourself"
            )
        now = to_second(self._runtime.clock.now())
        found = self._store.wake(host_id, kind, at=now, kept_until=now + WOKEN_FOR)
        if found.power.state is PowerState.WAKING and found.power.since == now:
            metrics.POWER_MOVES.add(found.power.state, found.power.reason)
        return found

    def log(self, host_id: str, page: Page, kind: ResourceKind = HOST) -> PowerLogPage:
        """Return a page of what has become of the power of a host, the oldest first. NotFound, InvalidInput."""
        return self._store.log(host_id, page, kind)


def _read_since(since: Moment | Duration | None, now: datetime) -> datetime:
    """Return from when on is summed up; InvalidInput if that is to come, or before the first date."""
    at = since or USUAL
    try:
        found = at.after(now) if isinstance(at, Duration) else now if at is NOW else at
        assert isinstance(found, datetime)
    except (OverflowError, ValueError):
        raise _no_start("before the first date") from None
    if found > now:
        raise _no_start(f"{zulu(found)}, which is to come")
    return to_second(found)


def _no_start(what: str) -> InvalidInput:
    return InvalidInput(
        f"from is {what}; give a date that has passed, or a duration back such as -P30D",
        code="invalid_query",
        at=query_field("from"),
    )


def _id_of(found: PoweredHost) -> str:
    return found.host.external_id


def _count(powers: Iterable[HostPower]) -> tuple[StateCount, ...]:
    """Return how many are in each state for each reason, the states in their order."""
    counts = Counter((power.state, power.reason) for power in powers)
    order = list(PowerState)
    keys = sorted(counts, key=lambda key: (order.index(key[0]), key[1]))
    return tuple(StateCount(*key, counts[key]) for key in keys)


def _add_lasting(sums: PowerSums, powers: Iterable[HostPower], since: datetime, now: datetime) -> PowerSums:
    """Return sums with the sleep that lasts."""
    lasting = (now - max(power.since, since) for power in powers if power.state is PowerState.OFF)
    return replace(sums, slept=sum(lasting, sums.slept))
