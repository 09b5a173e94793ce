# SPDX-License-Identifier: Apache-2.0
"""What is learned of each class of hosts that may sleep, again each hour, and kept for all threads of a manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blazar.manager.common.settings import Settings
from blazar.model.power.classes import POWERED, LearnedClasses, find_group, learn_classes, learn_spares
from blazar.model.power.learning import HOUR, MEMORY
from blazar.model.power.settings import ClassPower
from blazar.model.resources.resource import HOST
from blazar.store.store import Store

NONE: Mapping[int, str] = {}


@dataclass(slots=True)
class PowerClasses:
    """Reads what is learned of classes; four statements an hour."""

    _learned: LearnedClasses | None = field(default=None, init=False)

    def read(self, store: Store, settings: Settings, now: datetime, seen: Mapping[int, str] = NONE) -> LearnedClasses:
        """Return what is known by now of the classes of the registered hosts.

        If some were ``seen``, by calendar id, in another class than was known, all is learned again.
        """
        learned = self._learned
        is_known = learned is not None and learned.since <= now < learned.since + HOUR
        if learned is None or not is_known or not seen.items() <= learned.groups.items():
            self._learned = learned = _learn(store, settings, now)
        return learned


def _learn(store: Store, settings: Settings, now: datetime) -> LearnedClasses:
    power = settings.power
    hosts, others = (
        {one.id: find_group(one, power.class_by) for kind in kinds for one in store.resources.catalog(kind).resources}
        for kinds in ((HOST,), [kind for kind in POWERED if kind != HOST])
    )
    groups = {**hosts, **others}
    classes = learn_classes(groups, store.power.read_wakes(), power.wake_timeout)
    # What is no host has no spare: nobody has measured how often it is asked for at once.
    of_hosts = {group: classes[group] for group in sorted({*hosts.values()})}
    if power.spare is not None:
        of_hosts = {group: replace(limits, spare=power.spare) for group, limits in of_hosts.items()}
    else:
        of_hosts = dict(_learn_spares(store, settings, of_hosts, hosts, now))
    return LearnedClasses(now, {**classes, **of_hosts}, groups)


def _learn_spares(
    store: Store, settings: Settings, classes: Mapping[str, ClassPower], groups: Mapping[int, str], now: datetime
) -> Mapping[str, ClassPower]:
    """Return classes with the spare that was learned of each, by the working hours of the site."""
    zone = settings.reports.zone
    longest = max((limits.lead for limits in classes.values()), default=timedelta(0))
    known = store.power.read_requests(now - MEMORY, longest)
    requests = [replace(request, at=request.at.astimezone(zone)) for request in known]
    return learn_spares(classes, groups, requests, now=now.astimezone(zone))
