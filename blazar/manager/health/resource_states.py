# SPDX-License-Identifier: Apache-2.0
"""The state of resources: healthy or failed by the results of polls, disabled until operators' dates.

A single failed poll has no effect: ``failures_before_healing`` consecutive polls, or one after a notification, change
the state. Each manager counts for itself; the first that is sure writes the state, and only that one learns that
something changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.common.settings import Settings
from blazar.model.base.clock import Clock
from blazar.model.base.values import dataclass, field, replace
from blazar.model.power.classes import POWERED
from blazar.model.resources.resource import Resource, ResourceKind, noun
from blazar.store.store import Store

LOG = logging.getLogger(__name__)

VANISHED = "the cloud no longer knows it"

PollResult = Mapping[str, str | None]
"""Name of a resource → how it has failed, None if it is healthy. A resource that is missing here has vanished."""


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """Newly failed resources with reasons, recovered ones, and, for the others, how many polls disagreed in a row."""

    failed: Mapping[int, str] = field(default_factory=dict)
    recovered: frozenset[int] = frozenset()
    counts: Mapping[int, int] = field(default_factory=dict)


def judge(
    resources: Iterable[Resource],
    polled: PollResult,
    counts: Mapping[int, int],
    *,
    needed: int,
    hints: Collection[str] = (),
) -> HealthVerdict:
    """Return the new state of resources after one poll; ``counts`` is that of the previous verdict.

    ``needed`` consecutive polls change the state of a resource; one is enough for those whose name or service's name
    is in ``hints``. A poll that lists none of the resources is ignored as unreliable.
    """
    known = tuple(resources)
    if not any(resource.name in polled for resource in known):
        return HealthVerdict(counts=counts)
    failed: dict[int, str] = {}
    recovered: set[int] = set()
    after: dict[int, int] = {}
    for resource in known:
        failure = polled.get(resource.name, VANISHED)
        if (failure is None) == (resource.failure is None):
            continue
        count = counts.get(resource.id, 0) + 1
        told = {resource.name, str(resource.attributes.get("service_name"))} & set(hints)
        if count < needed and not told:
            after[resource.id] = count
        elif failure is None:
            recovered.add(resource.id)
        else:
            failed[resource.id] = failure
    return HealthVerdict(failed, frozenset(recovered), after)


class ResourceStates:
    """Keeps the state of resources as polled by the monitor."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        # By kind and region: each region is polled by itself.
        self._counts: dict[tuple[ResourceKind, str], Mapping[int, int]] = {}

    def registered(self, kind: ResourceKind, region: str = "") -> tuple[Resource, ...]:
        """Return the resources of a kind, or those of them in a region, to be polled; one statement."""
        every = self._store.resources.catalog(kind).resources
        return tuple(resource for resource in every if resource.region == region) if region else every

    def observe(
        self, kind: ResourceKind, resources: Collection[Resource], polled: PollResult, hints: Collection[str] = ()
    ) -> bool:
        """Process a poll of the ``resources`` of a kind in a region; tell whether the state of any of them changed.

        No statement while nothing changes; else a few, however many resources change.
        """
        key = kind, next((resource.region for resource in resources), "")
        verdict = judge(
            resources, polled, self._counts.get(key, {}), needed=self._settings.failures_before_healing, hints=hints
        )
        if resources and not polled.keys() & {resource.name for resource in resources}:
            LOG.warning("The cloud lists none of the registered %ss: the poll is ignored as unreliable", noun(kind))
        names = {resource.id: resource.name for resource in resources}
        well = {resource.id for resource in resources if resource.failure is None}
        now = self._clock.now()
        if (verdict.failed or verdict.counts.keys() & well) and (excused := self._find_excused(key[0], now)):
            verdict = replace(
                verdict,
                failed={id_: why for id_, why in verdict.failed.items() if id_ not in excused},
                counts={id_: n for id_, n in verdict.counts.items() if id_ not in excused or id_ not in well},
            )
        changed = self._store.resource_health.set_failed(
            kind, verdict.failed, at=now
        ) | self._store.resource_health.set_recovered(kind, verdict.recovered, at=now)
        # Only after the write: if it fails, the next poll sees the same again.
        self._counts[key] = verdict.counts
        for id_ in sorted(changed):
            if id_ in verdict.failed:
                LOG.warning("%s %s has failed: %s", noun(kind), names[id_], verdict.failed[id_])
            else:
                LOG.info("%s %s has recovered", noun(kind), names[id_])
        return bool(changed)

    def _find_excused(self, kind: ResourceKind, now: datetime) -> frozenset[int]:
        """Return the resources that are down or disabled because we want it so; two statements at most.

        In maintenance hosts restart, and are disabled by us; hosts that sleep are off. That heals nothing, as nobody
        gets them anyway, or not before they are awake, and does not count after it either.
        """
        begun = self._store.maintenances.find_begun(kind)
        return begun | self._store.power.read_asleep(now).ids if kind in POWERED else begun

    def forget(self, kinds: Collection[ResourceKind], *, before: datetime) -> None:
        """Count resources that failed before then as healthy: for kinds that are not polled."""
        old = self._store.resource_health.find_failed(kinds, before) if kinds else {}
        for kind in sorted(set(old.values())):
            self._store.resource_health.set_recovered(
                kind, [id_ for id_ in old if old[id_] == kind], at=self._clock.now()
            )


LONGEST_PAUSE_SECONDS = 60.0
"""After this time it is seen what requests to other managers have changed."""

RETRY_SECONDS = 5.0


class ResourceEnabler(BackgroundThread):
    """Enables resources when their time has come. Any number of managers may do so: one of them changes a resource.

    It has a thread of its own, so that no poll and no healing makes it late. ``enabled`` is called after a change.
    """

    def __init__(self, runtime: Runtime, *, enabled: Callable[[], None]) -> None:
        super().__init__("enabling", work="Resources cannot be enabled", retry=RETRY_SECONDS)
        self._store = runtime.store.resource_health
        self._clock = runtime.clock
        self._enabled = enabled

    def run_once(self) -> None:
        """Enable what is due. One statement while nothing is."""
        due = self._store.find_next_enabling()
        now = self._clock.now()
        if due is None or due > now:
            return
        for resource in self._store.enable_due(at=now):
            LOG.info("%s %s is enabled: it was disabled until now", noun(resource.kind).capitalize(), resource.name)
        self._enabled()

    def _round(self) -> float:
        self.run_once()
        due = self._store.find_next_enabling()
        if due is None:
            return LONGEST_PAUSE_SECONDS
        return min(max(0.0, (due - self._clock.now()).total_seconds()), LONGEST_PAUSE_SECONDS)
