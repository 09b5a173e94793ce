# SPDX-License-Identifier: Apache-2.0
"""The work on hosts that go off or wake: each is claimed by one manager at a time, and brought a step on.

What to do is decided from what is stored and seen (``steps``), and every deed is an ensure: what a manager that dies
has left is found done, or done again, by another one. Only what bears our mark in the cloud is opened again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from blazar.clouds.ports.power import MachinePower, PowerRef
from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import RARELY, DueWork
from blazar.manager.common.runtime import Runtime
from blazar.manager.power.steps import Deed, PowerStep, Sight, accept_refusal, take_step
from blazar.manager.power.work import PowerWork, title
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable, NotFound
from blazar.model.base.log_lines import log_level
from blazar.model.maintenance.windows import MARK as MAINTENANCE_MARK
from blazar.model.power.classes import POWERED, find_group
from blazar.model.power.hosts import PowerChange
from blazar.model.power.settings import DAY, DEFAULT_CLASS, PowerMode, PowerPolicy
from blazar.model.power.states import MARK, HostPower, PowerReason, PowerState
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.observe import metrics
from blazar.resources.contract.kind import Glance, Kind
from blazar.store.power.switches import DueHost, SwitchView

LOG = logging.getLogger(__name__)

THREADS = 4
"""How many hosts a manager works on at a time: a switch that does not answer holds up its own thread alone."""

RETRY = timedelta(seconds=30)
"""When a host is looked at again of which the cloud said nothing."""

MEMORY = 30 * DAY
MOST_FAILED_WAKES = 2
"""With so many wakes that failed within the memory a host is no longer switched off."""

GONE = Glance(up=False, mark="", occupants=1)
"""What is said of a host that the cloud does not know: that servers may be on it, so that nobody cuts its power."""

_SWITCHES = {Deed.SHUT_DOWN: MachinePower.OFF, Deed.CUT: MachinePower.OFF, Deed.SWITCH_ON: MachinePower.ON}


class SwitchWork(DueWork[DueHost, DueHost]):
    """Works on the hosts that are due. Any number of managers may do so, in any number of threads."""

    page = 50
    shortest = 0.5

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind], number: int) -> None:
        super().__init__(f"power-{number}", runtime, work="Hosts cannot be switched", retry=RETRY.total_seconds())
        self._store = runtime.store.switches
        self._kinds = kinds
        self._number = number % THREADS

    def _due(self) -> Iterable[DueHost]:
        found = self._store.due(self._runtime.clock.now(), self.page)
        # Each thread begins with others, so that they seldom want the same one.
        return sorted(found, key=lambda due: due.resource_id % THREADS != self._number)

    def _next_due(self) -> datetime | None:
        return self._store.next_due()

    def _claim(self, due: DueHost, claim: Claim) -> DueHost | None:
        until = self._runtime.claims.begin(claim)
        return due if self._store.claim(due, claim.token, until=until) else None

    def work(self, claimed: DueHost, claim: Claim) -> None:
        """Bring a host a step on. StoreUnavailable."""
        # One who has lost the claim leaves the host to the other manager.
        with self._runtime.claims.held(claim), suppress(ClaimLost):
            try:
                with scope(limit=self._runtime.settings.poll_limit):
                    self._go_on(claimed, claim)
                return
            except ClaimLost:
                raise
            except BlazarError as error:
                level = log_level(error, logging.WARNING)
                LOG.log(level, "The power of host %d cannot go on yet: %s", claimed.resource_id, error.message)
            except Exception:
                # The edge of one host: others go on whatever is wrong with this one.
                LOG.exception("The power of host %d failed; it will be tried again", claimed.resource_id)
            self._store.postpone(claimed, claim.token, due_at=to_second(self._runtime.clock.now()) + RETRY)

    def _go_on(self, claimed: DueHost, claim: Claim) -> None:
        now = to_second(self._runtime.clock.now())
        view = self._store.read_view(claimed.resource_id, now)
        if view is None or not view.host.is_due:
            self._store.postpone(claimed, claim.token, due_at=None)
            return
        look = self._look(view.resource)
        sight = Sight(now, look, view.outlook, self._ask_power(view, look))
        step = take_step(view.host, sight, self._runtime.settings.power, self._find_lead(view.resource, now))
        if step.deed in _SWITCHES:
            # Before it is done: another manager must not take a host for untouched that is about to lose its power.
            self._store.note_attempt(claim.token, step.states[-1])
        step = self._perform(view, step, sight)
        last = step.states[-1]
        due_at = now + step.pause if last.is_due else None
        self._store.release(claim.token, (view.host, *step.states), due_at=due_at)
        if last.state is not view.host.state:
            _note_moves((view.host, *step.states))
            self._tell(view, last)

    def _find_lead(self, resource: Resource, now: datetime) -> timedelta:
        """Return the lead of the class of a host."""
        group = find_group(resource, self._runtime.settings.power.class_by)
        return self._runtime.learned_power(now).classes.get(group, DEFAULT_CLASS).lead

    def _kind_of(self, resource: Resource) -> Kind:
        if (found := self._kinds.get(resource.kind)) is None:
            raise CloudUnavailable(f"the kind of {resource.name}, {resource.kind}, is not enabled here any more")
        return found

    def _look(self, resource: Resource) -> Glance:
        try:
            return self._kind_of(resource).look(resource)
        except NotFound:
            return GONE

    def _ask_power(self, view: SwitchView, look: Glance) -> MachinePower:
        """Return what the switch of a host says; unknown while nothing depends on it."""
        host = view.host
        begins = host.state is PowerState.GOING_OFF and not host.attempts
        if host.address is None or begins or (host.is_awake and look.up):
            return MachinePower.UNKNOWN
        ref = _ref(view.resource, view.host)
        reading = self._runtime.power_of(view.resource).power_states((ref,))[ref.resource_id]
        if reading.state is MachinePower.UNKNOWN:
            LOG.info("%s: it is not known whether it has power: %s", title(view.resource), reading.reason)
        return reading.state

    def _perform(self, view: SwitchView, step: PowerStep, sight: Sight) -> PowerStep:
        """Do what a step says; return the step, or the one that follows from a refusal."""
        if step.deed is Deed.CLOSE:
            self._kind_of(view.resource).close((view.resource,), MARK)
        elif step.deed is Deed.REOPEN:
            self._reopen(view.resource)
        elif step.deed is not None and (refusal := self._switch(view, step.deed)) is not None:
            LOG.warning(
                "%s could not be switched (%s): %s",
                title(view.resource),
                step.deed,
                refusal,
            )
            return self._perform(view, accept_refusal(view.host, step.deed, sight), sight)
        return step

    def _switch(self, view: SwitchView, deed: Deed) -> str | None:
        """Switch a host; return why that was refused. What was not answered may have taken effect."""
        if view.host.address is None:
            return "it has no adapter"
        power, ref = self._runtime.power_of(view.resource), _ref(view.resource, view.host)
        try:
            power.begin_switch(ref, _SWITCHES[deed], soft=deed is Deed.SHUT_DOWN)
        except ClaimLost:
            raise
        except CloudUnavailable as error:
            LOG.warning(
                "%s may have been switched (%s): %s",
                title(view.resource),
                deed,
                error.message,
            )
        except BlazarError as error:
            return error.message
        return None

    def _reopen(self, host: Resource) -> None:
        """Ensure that a host is open, unless a maintenance window that has begun needs it closed."""
        others, kind = self._marks(host), self._kind_of(host)
        kind.reopen((host,), MARK, others)
        # A window that has begun meanwhile has found it closed by us.
        if (mark := self._marks(host).get(host.id)) is not None and not others:
            kind.close((host,), mark)

    def _marks(self, host: Resource) -> Mapping[int, str]:
        closing = self._runtime.store.maintenances.find_closing({host.id}, besides="")
        return {id_: MAINTENANCE_MARK + window for id_, window in closing.items()}

    def _tell(self, view: SwitchView, after: HostPower) -> None:
        """Log what has become of a host, and keep one on that fails to wake again and again."""
        name, now = title(view.resource), after.since
        if after.reason is not PowerReason.TIMED_OUT:
            LOG.info("%s is %s (%s)", name, after.state, after.reason)
            return
        LOG.warning("%s was switched on and did not come up in time; it counts as failed", name)
        if self._store.count_failed_wakes(after.resource_id, now - MEMORY) >= MOST_FAILED_WAKES:
            kept = PowerChange(policy=PowerPolicy.KEEP)
            self._runtime.store.power_hosts.change(view.resource.external_id, kept, at=now)
            LOG.error("%s did not wake %d times in 30 days: it stays on from now on", name, MOST_FAILED_WAKES)


def _note_moves(states: Sequence[HostPower]) -> None:
    """Tell metrics which states a host has passed, the one that was read first."""
    for before, after in pairwise(states):
        if before.state is after.state:
            continue
        metrics.POWER_MOVES.add(after.state, after.reason)
        if before.state is PowerState.WAKING and after.reason is PowerReason.DONE:
            metrics.WAKE_DURATION.note((after.since - before.since).total_seconds())


def _ref(resource: Resource, host: HostPower) -> PowerRef:
    assert host.address is not None
    return PowerRef(resource.external_id, resource.name, host.address, resource.kind)


def make_power_work(runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> tuple[DueWork[Any, Any], ...]:
    """Return the plan first, and then what switches hosts; nothing where nothing could sleep.

    Where none is to sleep, both look now and then whether some do that another setting has put to sleep.
    """
    if not kinds.keys() & set(POWERED):
        return ()
    is_off = runtime.settings.power.mode is PowerMode.OFF
    switches = (SwitchWork(runtime, kinds, n + 1) for n in range(1 if is_off else THREADS))
    works: tuple[DueWork[Any, Any], ...] = (PowerWork(runtime, kinds), *switches)
    for work in works:
        work.idle = RARELY if is_off else None
    return works
