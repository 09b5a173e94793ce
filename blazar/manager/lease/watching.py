# SPDX-License-Identifier: Apache-2.0
"""The watch over the use of a lease: pure functions from a lease to the lease after a look."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from blazar.manager.lease import lifecycle, unused
from blazar.manager.lease.unused import Surroundings
from blazar.model.clock import to_second
from blazar.model.event_reasons import with_reason
from blazar.model.lease import EndReason, Event, EventStatus, EventType, Lease, LeaseStatus, SavedState
from blazar.model.unused import LeaseUse, Usage, UseMode, UsePolicy, UseStep, UseWatch
from blazar.model.window import Window

LATER = timedelta(minutes=10)
"""How long a look waits for a change of the lease."""


@dataclass(frozen=True, slots=True)
class Looked:
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


def armed(lease: Lease, policy: UsePolicy | None, now: datetime) -> Lease:
    """Return a lease whose start is finished, with the event of its first look; unchanged without a policy."""
    if policy is None or lease.status is not LeaseStatus.ACTIVE:
        return lease
    watch = unused.begun(policy, now)
    known = lease.event(EventType.USAGE_CHECK)
    at = _no_earlier(unused.first_look(watch))
    event = Event(
        id=str(uuid.uuid4()) if known is None else known.id,
        event_type=EventType.USAGE_CHECK,
        time=at,
        status=EventStatus.UNDONE,
        created_at=now,
        due_at=at,
        saved_state=SavedState(watch=watch),
    )
    return replace(lifecycle.with_event(lease, event), use=LeaseUse())


def postponed(lease: Lease, event: Event, until: datetime) -> Lease:
    """Return a lease with a look that is made later, and whose claim is given up."""
    later = replace(event, status=EventStatus.UNDONE, due_at=until, claimed_by=None, claimed_at=None)
    return lifecycle.with_event(lease, later)


def postponed_until(lease: Lease, now: datetime) -> datetime | None:
    """Return until when a look has to wait for a change of the lease; None if it need not."""
    return now + LATER if lease.status in (LeaseStatus.UPDATING, LeaseStatus.ERROR) else None


def is_void(lease: Lease) -> bool:
    """Tell whether nobody has to look at a lease: it is not in use any more."""
    return lease.status not in (LeaseStatus.ACTIVE, LeaseStatus.UPDATING, LeaseStatus.ERROR)


def unwatched(lease: Lease) -> Lease:
    """Return a lease at which nobody looks any more; the history of its use stays."""
    event = lease.event(EventType.USAGE_CHECK)
    if event is None or event.due_at is None:
        return lease
    use = None if lease.use is None else replace(lease.use, release_at=None)
    return replace(lifecycle.with_event(lease, replace(event, due_at=None)), use=use)


def after(lease: Lease, event: Event, policy: UsePolicy | None, looked: Looked, now: datetime) -> Lease:
    """Return a lease after a look: warned, kept, or with its end brought forward to now.

    ``policy`` is the one of today: it cannot shorten what the lease began with, but turn it off or into a dry run.
    """
    watch = None if event.saved_state is None else event.saved_state.watch
    if watch is None or policy is None:
        return replace(lifecycle.with_event(lease, _settled(event, now)), use=None)
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
    verdict = unused.judged(watch, looked.usage, looked.detail, around, now)
    found = verdict.watch
    kept = SavedState(watch=found)
    if verdict.next_at is None:
        done = replace(_settled(event, now), saved_state=kept)
    else:
        at = _no_earlier(verdict.next_at)
        free = replace(event, claimed_by=None, claimed_at=None, attempts=0, updated_at=now, saved_state=kept)
        done = with_reason(replace(free, status=EventStatus.UNDONE, time=at, due_at=at, trouble_since=None), None)
    seen = replace(lifecycle.with_event(lease, done), use=_shown(found))
    released = verdict.step is UseStep.RELEASED and found.policy.mode is UseMode.ON
    return _ending(seen, now) if released else seen


def kept(lease: Lease, now: datetime, *, again: bool) -> Lease:
    """Return a lease whose owner wants to keep it. Conflict as for ``unused.kept``."""
    return _watched(lease, unused.kept(watch_of(lease), now, again=again), now)


def held(lease: Lease, now: datetime, *, held: bool) -> Lease:
    """Return a lease that an operator wants to stay, or no longer; unchanged if it is so, or nobody looks at it."""
    watch = watch_of(lease)
    return lease if watch is None or watch.held is held else _watched(lease, unused.held(watch, held=held), now)


def last_step(lease: Lease) -> UseStep:
    """Return what the last look at a lease that can be released has led to; NOTHING in a dry run."""
    watch = watch_of(lease)
    if watch is None or not watch.looks or watch.policy.mode is not UseMode.ON:
        return UseStep.NOTHING
    return watch.looks[-1].step


def _watched(lease: Lease, watch: UseWatch, now: datetime) -> Lease:
    event = lease.event(EventType.USAGE_CHECK)
    assert event is not None
    at = _no_earlier(max(now, unused.first_look(watch)))
    due_at = at if event.due_at is not None else None
    changed = replace(event, time=at, due_at=due_at, updated_at=now, saved_state=SavedState(watch=watch))
    return replace(lifecycle.with_event(lease, changed), use=_shown(watch), updated_at=now)


def _shown(watch: UseWatch) -> LeaseUse:
    real = watch.policy.mode is UseMode.ON
    return LeaseUse(
        watch.usage,
        watch.used_at,
        _no_earlier(watch.release_at) if real and watch.release_at else None,
        None if real else watch.would_at or watch.release_at,
        watch.held,
    )


def _no_earlier(instant: datetime) -> datetime:
    """Return the first whole second that is not before an instant."""
    second = to_second(instant)
    return second if second == instant else second + timedelta(seconds=1)


def _settled(event: Event, now: datetime) -> Event:
    over = replace(event, status=EventStatus.DONE, due_at=None, claimed_by=None, claimed_at=None, updated_at=now)
    return with_reason(replace(over, trouble_since=None), None)


def _ending(lease: Lease, now: datetime) -> Lease:
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
