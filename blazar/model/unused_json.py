# SPDX-License-Identifier: Apache-2.0
"""The stored form of what looks at the use of a lease have found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from blazar.model.unused import Usage, UseLook, UseMode, UsePolicy, UseStep, UseWatch

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
        UseLook(datetime.fromisoformat(at), Usage(usage), detail, UseStep(step))
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
