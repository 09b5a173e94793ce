# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it: policies, what looks at a lease have found, the stored form of that, the report. In UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from blazar.model.base.values import dataclass, field

IDLE_STATES = frozenset({"SHUTOFF", "SHELVED", "SHELVED_OFFLOADED"})
"""States of servers that compute nothing and lose nothing when they are deleted with their lease's end."""

DEAD_STATES = frozenset({"ERROR", "DELETED", "SOFT_DELETED"})
"""States of servers that nobody uses."""

MOST_LOOKS = 30
"""Looks that the history of a lease keeps: the latest."""


class Usage(StrEnum):
    """What a look has found. ``UNKNOWN``: a cloud did not say; ``IDLE``: all that is there is stopped."""

    UNKNOWN = "unknown"
    USED = "used"
    IDLE = "idle"
    UNUSED = "unused"


class UseMode(StrEnum):
    """What comes of a policy: no looks at all, looks and a report, or warnings and releases."""

    OFF = "off"
    DRY_RUN = "dry_run"
    ON = "on"


class UseStep(StrEnum):
    """What a look leads to. ``USED_LATER``: the dry run would have released what was used after that."""

    NOTHING = "nothing"
    WARNED = "warned"
    NOTICED = "noticed"
    RELEASED = "released"
    HELD_BACK = "held_back"
    USED_LATER = "used_later"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class UsePolicy:
    """When a lease that nobody uses is released.

    ``unused_after`` its start if nothing was ever there; ``idle_after`` the time at which all of it was first seen
    stopped or gone (None: never). Its owner is warned ``warn_before`` the release and once more ``undo`` before it.
    ``idle_below``: a server that runs counts as stopped while its measured value is less than this; None: a server that
    runs is used. ValueError if the times are not in this order, or idling does not count and is measured.
    """

    mode: UseMode = UseMode.OFF
    unused_after: timedelta = timedelta(hours=9)
    idle_after: timedelta | None = None
    warn_before: timedelta = timedelta(hours=3)
    undo: timedelta = timedelta(minutes=15)
    idle_below: float | None = None

    def __post_init__(self) -> None:
        shortest = self.unused_after if self.idle_after is None else min(self.unused_after, self.idle_after)
        if not timedelta(0) < self.undo < self.warn_before < shortest:
            raise ValueError("undo must be shorter than warn_before, and that shorter than unused_after and idle_after")
        if self.idle_below is not None and self.idle_after is None:
            raise ValueError("idle_after must be set where source is prometheus: an idle lease is released after it")


@dataclass(frozen=True, slots=True)
class UsageSample:
    """One look at a lease: what was found ``at`` an instant, in words, and the step that it led to."""

    at: datetime
    usage: Usage
    detail: str = ""
    step: UseStep = UseStep.NOTHING


@dataclass(frozen=True, slots=True)
class UseWatch:
    """What is known of the use of a lease, under the ``policy`` that it started with.

    ``since`` is its real start, or when its owner last asked to keep it (``kept_at``). ``quiet_since`` is the first
    look that found nothing running after ``used_at``. ``would_release_at`` is that of a dry run; ``would_at`` when it
    would have been released. ``held``: an operator wants it to stay. ``good_at`` is the last look that was not unknown.
    """

    policy: UsePolicy
    since: datetime
    used_at: datetime | None = None
    quiet_since: datetime | None = None
    good_at: datetime | None = None
    warned_at: datetime | None = None
    noticed_at: datetime | None = None
    release_at: datetime | None = None
    would_at: datetime | None = None
    kept_at: datetime | None = None
    held: bool = False
    looks: tuple[UsageSample, ...] = ()

    @property
    def usage(self) -> Usage:
        """Return what the last look has found."""
        return self.looks[-1].usage if self.looks else Usage.UNKNOWN


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """What a lease that is looked at shows of its use.

    ``used_at`` is the last look that found it used, ``release_at`` when it is going to be released, and
    ``would_release_at`` when a dry run would; each None if that is not so. ``held``: an operator wants it to stay.
    """

    usage: Usage = Usage.UNKNOWN
    used_at: datetime | None = None
    release_at: datetime | None = None
    would_release_at: datetime | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class UsePolicies:
    """The policies of resource types, and of projects for these; ``default`` for all others.

    ``overrides`` are by resource type and project; an empty string stands for any. ``exempt`` projects are never
    looked at. ``brake`` is the share of all leases beyond which nothing is released within an hour.
    """

    default: UsePolicy = UsePolicy()
    overrides: Mapping[tuple[str, str], UsePolicy] = field(default_factory=dict)
    exempt: frozenset[str] = frozenset()
    brake: float = 0.2

    def of(self, resource_type: str, project_id: str) -> UsePolicy:
        """Return the policy of a reservation: the first of type and project, project, type, and default."""
        for key in ((resource_type, project_id), ("", project_id), (resource_type, "")):
            if key in self.overrides:
                return self.overrides[key]
        return self.default

    def of_lease(self, resource_types: frozenset[str], project_id: str) -> UsePolicy | None:
        """Return the policy of a lease: of several types the most patient. None if any of them is not looked at."""
        if project_id in self.exempt or not resource_types:
            return None
        found = [self.of(name, project_id) for name in sorted(resource_types)]
        if any(policy.mode is UseMode.OFF for policy in found):
            return None
        idle = [policy.idle_after for policy in found]
        below = [policy.idle_below for policy in found]
        measured = None not in below and None not in idle
        return UsePolicy(
            mode=UseMode.ON if all(policy.mode is UseMode.ON for policy in found) else UseMode.DRY_RUN,
            unused_after=max(policy.unused_after for policy in found),
            idle_after=None if None in idle else max(length for length in idle if length is not None),
            warn_before=max(policy.warn_before for policy in found),
            undo=max(policy.undo for policy in found),
            idle_below=min(bound for bound in below if bound is not None) if measured else None,
        )


@dataclass(frozen=True, slots=True)
class UseReport:
    """A lease that is looked at, for operators. ``used_later``: the dry run would have been wrong about it."""

    id: str
    name: str
    project_id: str
    user_id: str
    mode: UseMode
    usage: Usage
    since: datetime
    used_at: datetime | None
    release_at: datetime | None
    would_release_at: datetime | None
    would_have_released_at: datetime | None
    used_later: bool
    kept_at: datetime | None
    held: bool
    looks: tuple[UsageSample, ...]


_TIMES = ("since", "used_at", "quiet_since", "good_at", "warned_at", "noticed_at", "release_at", "would_at", "kept_at")


def watch_json(watch: UseWatch) -> dict[str, Any]:
    """Return a watch; times that are None are left out."""
    times = {name: at.isoformat() for name in _TIMES if (at := getattr(watch, name)) is not None}
    looks = [[look.at.isoformat(), str(look.usage), look.detail, str(look.step)] for look in watch.looks]
    return {**times, "held": watch.held, "policy": _policy_json(watch.policy), "looks": looks}


def watch_of(stored: Mapping[str, Any]) -> UseWatch:
    """Return a watch."""
    times = {name: datetime.fromisoformat(stored[name]) for name in _TIMES if name in stored}
    looks = tuple(
        UsageSample(datetime.fromisoformat(at), Usage(usage), detail, UseStep(step))
        for at, usage, detail, step in stored["looks"]
    )
    return UseWatch(_policy_of(stored["policy"]), held=bool(stored["held"]), looks=looks, **times)


def _policy_json(policy: UsePolicy) -> dict[str, Any]:
    # Watches of before it was known do not have it.
    measured = {} if policy.idle_below is None else {"idle_below": policy.idle_below}
    return {
        **measured,
        "mode": str(policy.mode),
        "unused_after": int(policy.unused_after.total_seconds()),
        "idle_after": None if policy.idle_after is None else int(policy.idle_after.total_seconds()),
        "warn_before": int(policy.warn_before.total_seconds()),
        "undo": int(policy.undo.total_seconds()),
    }


def _policy_of(stored: Mapping[str, Any]) -> UsePolicy:
    idle = stored["idle_after"]
    return UsePolicy(
        mode=UseMode(stored["mode"]),
        unused_after=timedelta(seconds=stored["unused_after"]),
        idle_after=None if idle is None else timedelta(seconds=idle),
        warn_before=timedelta(seconds=stored["warn_before"]),
        undo=timedelta(seconds=stored["undo"]),
        idle_below=stored.get("idle_below"),
    )
