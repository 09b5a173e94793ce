# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers that have been told when they go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from blazar.model.base.values import dataclass


@dataclass(frozen=True, slots=True)
class PreemptedServer:
    """A server that is deleted for a reservation. ``saved``: its owner wants an image of it before."""

    id: str
    name: str
    project_id: str
    user_id: str
    resource_id: int
    saved: bool = False


@dataclass(frozen=True, slots=True)
class PreemptedPlace:
    """A resource that a reservation needs from an instant on."""

    reservation_id: str
    resource_type: str
    resource_id: int
    starts_at: datetime


@dataclass(frozen=True, slots=True)
class Preemption:
    """What the owner of a server was told: that it is deleted at an instant, as a reservation needs its resource."""

    server: PreemptedServer
    reservation_id: str
    resource_type: str
    ends_at: datetime

    @property
    def place(self) -> PreemptedPlace:
        """Return what is needed, by whom, and from when on."""
        return PreemptedPlace(self.reservation_id, self.resource_type, self.server.resource_id, self.ends_at)


@dataclass(frozen=True, slots=True)
class NoticeChanges:
    """What a look adds to what was told: ``new``; ``stale``, which is not true any more; and what is ``over``."""

    new: tuple[Preemption, ...] = ()
    stale: tuple[Preemption, ...] = ()
    over: tuple[Preemption, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        return not (self.new or self.stale or self.over)


def compare_notices(
    known: Mapping[str, Preemption],
    seen: Iterable[Preemption],
    coming: Collection[PreemptedPlace],
    now: datetime,
    *,
    gone: Collection[PreemptedPlace] = (),
) -> NoticeChanges:
    """Return how what was told, by server, differs from what a look has ``seen`` in the places that are needed.

    A server that several starts need to go is told of the earliest one. A notice stays in force until its start, even
    if the server was not seen in this look: the cloud may not have answered. It also stays where servers are ``gone``.
    """
    first: dict[str, Preemption] = {}
    for preemption in sorted(seen, key=lambda preemption: preemption.ends_at):
        first.setdefault(preemption.server.id, preemption)
    before = {id_: preemption.ends_at for id_, preemption in known.items()}
    others = [preemption for id_, preemption in known.items() if id_ not in first]
    return NoticeChanges(
        new=tuple(p for id_, p in first.items() if before.get(id_) != p.ends_at),
        stale=tuple(p for p in others if p.ends_at > now and p.place not in coming and p.place not in gone),
        over=tuple(p for p in known.values() if p.ends_at <= now or (p.place in gone and p.server.id not in first)),
    )
