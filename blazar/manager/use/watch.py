# SPDX-License-Identifier: Apache-2.0
"""The watch over the use of a lease: pure functions from a lease to the lease after a look, and who calls it off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from blazar.manager.common.busy_leases import Busy
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle
from blazar.manager.use import unused
from blazar.manager.use.unused import Surroundings
from blazar.model.base.clock import to_second
from blazar.model.base.errors import Conflict, StaleLease
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease, SavedState, set_reason
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus
from blazar.model.use.policy import LeaseUse, Usage, UseMode, UsePolicy, UseStep, UseWatch

LATER = timedelta(minutes=10)
"""How long a look waits for a change of the lease."""


@dataclass(frozen=True, slots=True)
class UsageFinding:
    """What a look has found: the usage, in words, and what stands in the way of a release (see ``Surroundings``)."""

    usage: Usage
    detail: str
    doubt: str = ""
    due: int = 0
    leases: int = 0
    brake: float = 0.2


def watch_of(lease: Lease) -> UseWatch | None:
    """Return the watch over a lease; None if nobody looks at it."""
    event = lease.event(EventType.USAGE_CHECK)
    return None if event is None or event.saved_state is None else event.saved_state.watch


def arm(lease: Lease, policy: UsePolicy | None, now: datetime) -> Lease:
    """Return a lease whose start is finished, with the event of its first look; unchanged without a policy."""
    if policy is None or lease.status is not LeaseStatus.ACTIVE:
        return lease
    watch = unused.begin_watch(policy, now)
    at = _round_up(unused.first_check(watch))
    event = lifecycle.new_event(EventType.USAGE_CHECK, at, now, due_at=at, known=lease.event(EventType.USAGE_CHECK))
    return replace(lifecycle.with_event(lease, replace(event, saved_state=SavedState(watch=watch))), use=LeaseUse())


def postpone_check(lease: Lease, event: Event, until: datetime) -> Lease:
    """Return a lease with a look that is made later, and whose claim is given up."""
    later = replace(event, status=EventStatus.UNDONE, due_at=until, claimed_by=None, claimed_at=None)
    return lifecycle.with_event(lease, later)


def postponed_until(lease: Lease, now: datetime) -> datetime | None:
    """Return until when a look has to wait for a change of the lease; None if it need not."""
    return now + LATER if lease.status in (LeaseStatus.UPDATING, LeaseStatus.ERROR) else None


def is_void(lease: Lease) -> bool:
    """Tell whether nobody has to look at a lease: it is not in use any more."""
    return lease.status not in (LeaseStatus.ACTIVE, LeaseStatus.UPDATING, LeaseStatus.ERROR)


def end_watch(lease: Lease) -> Lease:
    """Return a lease at which nobody looks any more; the history of its use stays."""
    event = lease.event(EventType.USAGE_CHECK)
    if event is None or event.due_at is None:
        return lease
    use = None if lease.use is None else replace(lease.use, release_at=None)
    return replace(lifecycle.with_event(lease, replace(event, due_at=None)), use=use)


def apply_finding(lease: Lease, event: Event, policy: UsePolicy | None, looked: UsageFinding, now: datetime) -> Lease:
    """Return a lease after a look: warned, kept, or with its end brought forward to now.

    ``policy`` is the one of today: it cannot shorten what the lease began with, but turn it off or into a dry run.
    """
    watch = None if event.saved_state is None else event.saved_state.watch
    if watch is None or policy is None:
        return replace(lifecycle.with_event(lease, _finish(event, event.saved_state, now)), use=None)
    if policy.mode is not UseMode.ON:
        watch = replace(watch, policy=replace(watch.policy, mode=policy.mode))
    around = Surroundings(
        end=lease.window.end,
        changed_at=lease.updated_at or lease.created_at,
        doubt=looked.doubt,
        due=looked.due,
        leases=looked.leases,
        brake=looked.brake,
    )
    verdict = unused.judge_usage(watch, looked.usage, looked.detail, around, now)
    found = verdict.watch
    kept = SavedState(watch=found)
    if verdict.next_at is None:
        done = _finish(event, kept, now)
    else:
        at = _round_up(verdict.next_at)
        free = replace(event, claimed_by=None, claimed_at=None, attempts=0, updated_at=now, saved_state=kept)
        done = set_reason(replace(free, status=EventStatus.UNDONE, time=at, due_at=at, trouble_since=None), None)
    seen = replace(lifecycle.with_event(lease, done), use=_show_use(found))
    released = verdict.step is UseStep.RELEASED and found.policy.mode is UseMode.ON
    return _end_now(seen, now) if released else seen


def keep(lease: Lease, now: datetime, *, again: bool) -> Lease:
    """Return a lease whose owner wants to keep it. Conflict as for ``unused.keep``."""
    return _set_watch(lease, unused.keep(watch_of(lease), now, again=again), now)


def hold(lease: Lease, now: datetime, *, held: bool) -> Lease:
    """Return a lease that an operator wants to stay, or no longer; unchanged if it is so, or nobody looks at it."""
    watch = watch_of(lease)
    return lease if watch is None or watch.held is held else _set_watch(lease, unused.hold(watch, held=held), now)


def last_step(lease: Lease) -> UseStep:
    """Return what the last look at a lease that can be released has led to; NOTHING in a dry run."""
    watch = watch_of(lease)
    if watch is None or not watch.looks or watch.policy.mode is not UseMode.ON:
        return UseStep.NOTHING
    return watch.looks[-1].step


def _set_watch(lease: Lease, watch: UseWatch, now: datetime) -> Lease:
    event = lease.event(EventType.USAGE_CHECK)
    assert event is not None
    at = _round_up(max(now, unused.first_check(watch)))
    due_at = at if event.due_at is not None else None
    changed = replace(event, time=at, due_at=due_at, updated_at=now, saved_state=SavedState(watch=watch))
    return replace(lifecycle.with_event(lease, changed), use=_show_use(watch), updated_at=now)


def _show_use(watch: UseWatch) -> LeaseUse:
    real = watch.policy.mode is UseMode.ON
    return LeaseUse(
        watch.usage,
        watch.used_at,
        _round_up(watch.release_at) if real and watch.release_at else None,
        None if real else watch.would_at or watch.release_at,
        watch.held,
    )


def _round_up(instant: datetime) -> datetime:
    """Return the first whole second that is not before an instant."""
    second = to_second(instant)
    return second if second == instant else second + timedelta(seconds=1)


def _finish(event: Event, kept: SavedState | None, now: datetime) -> Event:
    return replace(lifecycle.finish(event, now), saved_state=kept)


def _end_now(lease: Lease, now: datetime) -> Lease:
    """Return a lease that ends now: what it does before its end comes first, as always."""
    end = to_second(now)
    window = Window(lease.window.start, max(end, lease.window.start + timedelta(seconds=1)))
    events = tuple(
        replace(e, time=end, due_at=end, updated_at=now)
        if e.event_type in (EventType.BEFORE_END, EventType.END) and e.status is EventStatus.UNDONE
        else e
        for e in lease.events
    )
    use = None if lease.use is None else replace(lease.use, release_at=None)
    return replace(lease, window=window, events=events, end_reason=EndReason.UNUSED, use=use, updated_at=now)


class UsageHolds:
    """Keeps leases from being released."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def keep(self, lease_id: str, *, again: bool) -> Lease:
        """Count the time without use from now on. NotFound; Conflict: nothing to keep it from, or kept already."""
        return self._changed(lease_id, lambda lease, now: keep(lease, now, again=again))

    def hold(self, lease_id: str, *, held: bool) -> Lease:
        """Never release a lease, or no longer hold it. NotFound; Conflict if nobody looks at it."""

        def change(lease: Lease, now: datetime) -> Lease:
            if watch_of(lease) is None:
                raise Conflict(
                    "nobody looks whether the lease is used; there is nothing to hold", code="not_threatened"
                )
            return hold(lease, now, held=held)

        return self._changed(lease_id, change)

    def _changed(self, lease_id: str, change: Callable[[Lease, datetime], Lease]) -> Lease:
        while True:
            now = self._runtime.clock.now()
            lease = self._runtime.store.leases.one(lease_id)
            if lease.status is not LeaseStatus.ACTIVE:
                status = str(lease.status)
                raise Conflict(f"the lease is {status}, not ACTIVE", code="not_threatened", data={"status": status})
            check = lease.event(EventType.USAGE_CHECK)
            if check is not None and lifecycle.is_claimed(check, now):
                raise Busy("its use is being looked at; retry in a moment", lease.project_id)
            if lifecycle.live_claim(lease, now) is not None:
                raise Busy("it is changing; retry in a moment", lease.project_id)
            changed = change(lease, now)
            if changed is lease:
                return lease
            try:
                return self._runtime.store.leases.save(lease, changed, at=now)
            except StaleLease:
                continue
