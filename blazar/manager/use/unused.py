# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it, as pure decisions: from what a look has found to what is done about the lease.

Whatever is in doubt keeps the lease: a look that failed, a lease that is not as it was promised, a change of the last
hour. A doubt also takes back the warning, so that its owner always has the whole time of the policy to answer it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from blazar.clouds.ports.compute import Server
from blazar.model.base.errors import Conflict
from blazar.model.base.values import dataclass, replace
from blazar.model.use.policy import (
    DEAD_STATES,
    IDLE_STATES,
    MOST_LOOKS,
    Usage,
    UsageSample,
    UseMode,
    UsePolicy,
    UseStep,
    UseWatch,
)

AGAIN = timedelta(minutes=10)
"""The next look after one that found out nothing; also the age at which a good look says nothing any more."""

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

GAP = timedelta(hours=3)
"""After so long without a good look nothing is known of what was idle before."""

BRAKE_FROM = 3
"""As many leases as this in an hour are no sign of a probe that is broken."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else is to be known of a lease before it is released. ``end`` and ``changed_at`` are its own.

    ``doubt`` says why it must stay, empty if nothing is known. ``due`` is how many leases are released in the hours
    before and after, this one included, and ``leases`` of how many: those in use and those released in the hour before;
    ``brake`` is the share that is allowed.
    """

    end: datetime
    changed_at: datetime
    doubt: str = ""
    due: int = 0
    leases: int = 0
    brake: float = 0.2

    @property
    def braked(self) -> bool:
        """Return whether so many would be released that a probe is probably broken."""
        return self.due > max(BRAKE_FROM, self.brake * self.leases)


@dataclass(frozen=True, slots=True)
class UseVerdict:
    """What a look leads to: the watch after it, the step, why, and when to look again (None: never)."""

    watch: UseWatch
    step: UseStep
    reason: str
    next_at: datetime | None


def usage_of(states: Mapping[str, int]) -> Usage:
    """Return what a number of things by state amount to: anything that is not known to be idle or dead is used."""
    there = {state for state, count in states.items() if count and state.upper() not in DEAD_STATES}
    if not there:
        return Usage.UNUSED
    return Usage.IDLE if all(state.upper() in IDLE_STATES for state in there) else Usage.USED


def measured_usage(servers: Collection[Server], values: Mapping[str, float], bound: float) -> Usage:
    """Return the usage of servers of which those that run have a measured value; one without it is not known.

    Only ACTIVE servers are measured: what happens to others, as a resize, is in no measurement.
    """
    parts = []
    for server in servers:
        if server.status.upper() != "ACTIVE":
            parts.append(usage_of({server.status: 1}))
        elif server.id not in values:
            parts.append(Usage.UNKNOWN)
        else:
            parts.append(Usage.IDLE if values[server.id] < bound else Usage.USED)
    # One that is known to be used is enough, whatever is not known of the others.
    return Usage.USED if Usage.USED in parts else joint_usage(parts or [Usage.UNUSED])


def joint_usage(parts: Collection[Usage]) -> Usage:
    """Return the usage of a lease from that of its reservations: the one that speaks most for keeping it."""
    order = (Usage.UNKNOWN, Usage.USED, Usage.IDLE)
    return next((usage for usage in order if usage in parts), Usage.UNUSED if parts else Usage.UNKNOWN)


def begin_watch(policy: UsePolicy, now: datetime) -> UseWatch:
    """Return the watch of a lease whose start is finished."""
    return UseWatch(policy, since=now)


def pace(policy: UsePolicy) -> timedelta:
    """Return the time between looks at a lease that may be released, and for which a change of it keeps it.

    That is an hour; where the policy has no hour before its warning, as long as it has, so that the start itself does
    not put it off.
    """
    return max(MINUTE, min(HOUR, policy.unused_after - policy.warn_before))


def first_check(watch: UseWatch) -> datetime:
    """Return when to look first: in time for the warning, and within an hour if idling counts."""
    warning = watch.since + watch.policy.unused_after - watch.policy.warn_before
    return warning if watch.policy.idle_after is None else min(warning, watch.since + pace(watch.policy))


def judge_usage(watch: UseWatch, found: Usage, detail: str, around: Surroundings, now: datetime) -> UseVerdict:
    """Return what a look leads to. It is made ``now``: nothing that was found earlier releases a lease."""
    noted = _note_usage(watch, found, now)
    verdict = _verdict(noted, found, around, now)
    step = verdict.step
    if watch.would_at is not None:
        # The dry run has said what it would have done; what is left to see is whether that would have been wrong.
        later = found is Usage.USED
        step = UseStep.USED_LATER if later else UseStep.NOTHING
        kept = replace(noted, would_at=watch.would_at, release_at=None)
        verdict = UseVerdict(
            kept, step, "it was used after all" if later else "", None if later else now + pace(watch.policy)
        )
    look = UsageSample(now, found, detail if not verdict.reason else f"{detail}; {verdict.reason}".strip("; "), step)
    looks = (*watch.looks, look)[-MOST_LOOKS:]
    return replace(verdict, watch=replace(verdict.watch, looks=looks))


def keep(watch: UseWatch | None, now: datetime, *, again: bool = False) -> UseWatch:
    """Return the watch of a lease whose owner wants to keep it. Conflict if nothing threatens it, or a second time.

    ``again``: an operator may ask as often as need be.
    """
    if watch is None or watch.release_at is None or watch.policy.mode is not UseMode.ON:
        raise Conflict("the lease is not going to be released; there is nothing to keep it from", code="not_threatened")
    if watch.kept_at is not None and not again:
        raise Conflict(
            f"the lease was kept once already, at {watch.kept_at:%Y-%m-%dT%H:%M:%SZ}; start a server in it, "
            "or ask an operator",
            code="kept_already",
        )
    look = UsageSample(now, watch.usage, "its owner wants to keep it", UseStep.KEPT)
    free = _drop_warning(watch)
    return replace(free, since=now, kept_at=now, looks=(*watch.looks, look)[-MOST_LOOKS:])


def hold(watch: UseWatch, *, held: bool) -> UseWatch:
    """Return the watch of a lease that an operator wants to stay, or no longer."""
    return replace(_drop_warning(watch) if held else watch, held=held)


def _note_usage(watch: UseWatch, found: Usage, now: datetime) -> UseWatch:
    """Return the watch with what was found."""
    if found is Usage.UNKNOWN:
        return watch
    stale = watch.good_at is not None and now - watch.good_at > GAP
    seen = replace(watch, good_at=now)
    match found:
        case Usage.USED:
            return replace(_drop_warning(seen), used_at=now, quiet_since=None)
        case Usage.IDLE if watch.used_at is None:
            # Something was made, so that it is not unused; how long it has been stopped is not known.
            return replace(_drop_warning(seen), used_at=now, quiet_since=now)
    if watch.used_at is None:
        return seen
    if watch.quiet_since is None or stale:
        return replace(_drop_warning(seen), quiet_since=now)
    return seen


def _drop_warning(watch: UseWatch) -> UseWatch:
    return replace(watch, warned_at=None, noticed_at=None, release_at=None)


def _verdict(watch: UseWatch, found: Usage, around: Surroundings, now: datetime) -> UseVerdict:
    policy = watch.policy
    if found is Usage.UNKNOWN:
        # The last notice is repeated: what it said is not known to be true any more.
        later = None if watch.release_at is None else max(watch.release_at, now + AGAIN + policy.undo)
        unsure = replace(watch, noticed_at=None, release_at=later)
        return UseVerdict(unsure, UseStep.NOTHING, "it is not known whether it is used", now + AGAIN)
    deadline = _deadline(watch)
    hourly = now + pace(policy)
    if deadline is None:
        return UseVerdict(watch, UseStep.NOTHING, "", None if policy.idle_after is None else hourly)
    if now < deadline - policy.warn_before:
        warning = deadline - policy.warn_before
        return UseVerdict(watch, UseStep.NOTHING, "", warning if policy.idle_after is None else min(warning, hourly))
    if doubt := _doubt(watch, around, now):
        return UseVerdict(_drop_warning(watch), UseStep.NOTHING, doubt, hourly)
    if watch.warned_at is None or watch.release_at is None:
        at = max(deadline, now + policy.warn_before)
        if around.end - at < policy.warn_before:
            return UseVerdict(watch, UseStep.NOTHING, "it ends soon after it could be released", hourly)
        warned = replace(watch, warned_at=now, release_at=at)
        return UseVerdict(warned, UseStep.WARNED, _why(watch), min(at - policy.undo, hourly))
    if watch.noticed_at is None:
        if now < watch.release_at - policy.undo:
            return UseVerdict(watch, UseStep.NOTHING, "", min(watch.release_at - policy.undo, hourly))
        at = max(watch.release_at, now + policy.undo)
        return UseVerdict(replace(watch, noticed_at=now, release_at=at), UseStep.NOTICED, _why(watch), at)
    if now < watch.release_at:
        return UseVerdict(watch, UseStep.NOTHING, "", watch.release_at)
    if around.braked:
        text = f"{around.due} of {around.leases} leases would be released within an hour: a probe may be broken"
        return UseVerdict(
            replace(watch, release_at=hourly, noticed_at=None), UseStep.HELD_BACK, text, hourly - policy.undo
        )
    if policy.mode is not UseMode.ON:
        return UseVerdict(replace(watch, would_at=now), UseStep.RELEASED, f"would: {_why(watch)}", hourly)
    return UseVerdict(watch, UseStep.RELEASED, _why(watch), None)


def _deadline(watch: UseWatch) -> datetime | None:
    """Return when a lease counts as not used; None if it is used, or if idling does not count."""
    if watch.used_at is None:
        return watch.since + watch.policy.unused_after
    if watch.quiet_since is None or watch.policy.idle_after is None:
        return None
    return max(watch.quiet_since, watch.since) + watch.policy.idle_after


def _doubt(watch: UseWatch, around: Surroundings, now: datetime) -> str:
    """Return why a lease must stay; empty if nothing is known."""
    if watch.held:
        return "an operator wants it to stay"
    if around.doubt:
        return around.doubt
    if around.end - now < watch.policy.warn_before:
        return "it ends soon"
    if now - around.changed_at < pace(watch.policy):
        return "it was changed a short time ago"
    return ""


def _why(watch: UseWatch) -> str:
    if watch.used_at is None:
        return f"nothing was started in it since {watch.since:%Y-%m-%dT%H:%M:%SZ}"
    idle = "nothing has run in it" if watch.policy.idle_below is None else "nothing in it has done any work"
    return f"{idle} since {watch.quiet_since:%Y-%m-%dT%H:%M:%SZ}"
