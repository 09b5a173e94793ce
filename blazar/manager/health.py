# SPDX-License-Identifier: Apache-2.0
"""Health: what monitors see of resources, and from when on that counts.

One look that misses a host reshuffles nothing: a resource changes between well and failed when it was seen otherwise so
many times in a row, or when somebody said so in as many words. Each manager counts for itself; the first to be sure
writes it down, and only that one is told that it changed anything.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from blazar.manager.settings import Settings
from blazar.model.clock import Clock
from blazar.model.resource import Resource, ResourceKind
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

VANISHED = "the cloud does not know it any more"

Seen = Mapping[str, str | None]
"""Name of a resource → how it has failed, None if it is well. What is not named has vanished."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has failed and why, what is well again, and how often the others were seen otherwise than they count."""

    failed: Mapping[int, str] = field(default_factory=dict)
    well: frozenset[int] = frozenset()
    counts: Mapping[int, int] = field(default_factory=dict)


def judge(
    resources: Iterable[Resource],
    seen: Seen,
    counts: Mapping[int, int],
    *,
    needed: int,
    said: Collection[str] = (),
) -> Verdict:
    """Judge resources by one look at all of them; ``counts`` is what the look before came to.

    ``needed`` looks in a row change what a resource counts as; one is enough for those whose name or service's name is
    among the ``said``. A look that finds none of the resources is none: then not they have vanished, but the
    view of them.
    """
    known = tuple(resources)
    if not any(resource.name in seen for resource in known):
        return Verdict(counts=counts)
    failed: dict[int, str] = {}
    well: set[int] = set()
    after: dict[int, int] = {}
    for resource in known:
        failure = seen.get(resource.name, VANISHED)
        if (failure is None) == (resource.failure is None):
            continue
        count = counts.get(resource.id, 0) + 1
        told = {resource.name, str(resource.attributes.get("service_name"))} & set(said)
        if count < needed and not told:
            after[resource.id] = count
        elif failure is None:
            well.add(resource.id)
        else:
            failed[resource.id] = failure
    return Verdict(failed, frozenset(well), after)


class Health:
    """Keeps the state of resources as monitors see it."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._counts: dict[ResourceKind, Mapping[int, int]] = {}

    def registered(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the resources of a kind, to be looked at; one statement."""
        return self._store.inventory(kind).resources

    def observe(
        self, kind: ResourceKind, resources: Collection[Resource], seen: Seen, said: Collection[str] = ()
    ) -> bool:
        """Take note of a look at the ``resources`` of a kind; tell whether any of them counts as something else now.

        No statement while nothing changes; for what does, a few, whatever their number.
        """
        verdict = judge(
            resources, seen, self._counts.get(kind, {}), needed=self._settings.failures_before_healing, said=said
        )
        if resources and not seen.keys() & {resource.name for resource in resources}:
            LOG.warning("None of the registered %ss is in the cloud's list, which therefore does not count", kind)
        names = {resource.id: resource.name for resource in resources}
        now = self._clock.now()
        changed = self._store.set_failed(kind, verdict.failed, at=now) | self._store.set_well(
            kind, verdict.well, at=now
        )
        # Not before it is written: what could not be is seen again with the next look.
        self._counts[kind] = verdict.counts
        for id_ in sorted(changed):
            if id_ in verdict.failed:
                LOG.warning("%s %s has failed: %s", kind, names[id_], verdict.failed[id_])
            else:
                LOG.info("%s %s is well again", kind, names[id_])
        return bool(changed)

    def forget(self, kinds: Collection[ResourceKind], *, before: datetime) -> None:
        """Let what failed so long ago count as well: for kinds that no monitor looks at."""
        old = self._store.failed_by(kinds, before) if kinds else {}
        for kind in sorted(set(old.values())):
            self._store.set_well(kind, [id_ for id_ in old if old[id_] is kind], at=self._clock.now())
