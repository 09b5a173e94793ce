# SPDX-License-Identifier: Apache-2.0
"""What is learned of each class of hosts that may sleep, again each hour, and kept for all threads of a manager."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from blazar.manager.common.settings import Settings
from blazar.model.base.values import dataclass, field, replace
from blazar.model.power.classes import (
    POWERED,
    LearnedClasses,
    find_group,
    find_values,
    fix_spares,
    learn_classes,
    learn_spares,
)
from blazar.model.power.learning import HOUR, MEMORY, is_working_time
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
        learned, zone = self._learned, settings.reports.zone
        is_known = learned is not None and learned.since <= now < learned.since + HOUR and _is_alike(learned, now, zone)
        if learned is None or not is_known or not seen.items() <= learned.groups.items():
            self._learned = learned = _learn(store, settings, now)
        power = settings.power
        if power.spare is None and not power.spare_rules:
            return learned
        at = now.astimezone(zone)
        return replace(learned, classes=fix_spares(learned.classes, learned.values, power.spare_rules, power.spare, at))


def _is_alike(learned: LearnedClasses, now: datetime, zone: ZoneInfo) -> bool:
    """Tell whether it was learned in hours that count together with those of now."""
    return is_working_time(learned.since.astimezone(zone)) is is_working_time(now.astimezone(zone))


def _learn(store: Store, settings: Settings, now: datetime) -> LearnedClasses:
    power = settings.power
    hosts, others = (
        [one for kind in kinds for one in store.resources.catalog(kind).resources]
        for kinds in ((HOST,), [kind for kind in POWERED if kind != HOST])
    )
    of_hosts = {one.id: find_group(one, power.class_by) for one in hosts}
    values = {of_hosts[one.id]: find_values(one, power.class_by) for one in hosts}
    groups = {**of_hosts, **{one.id: find_group(one, power.class_by) for one in others}}
    classes = learn_classes(groups, store.power.read_wakes(), power.wake_timeout)
    if power.spare is None or any(rule.hosts is None for rule in power.spare_rules):
        # What is no host has no spare: nobody has measured how often it is asked for at once.
        known = {group: classes[group] for group in sorted(values)}
        classes = {**classes, **_learn_spares(store, settings, known, of_hosts, now)}
    return LearnedClasses(now, classes, groups, values)


def _learn_spares(
    store: Store, settings: Settings, classes: Mapping[str, ClassPower], groups: Mapping[int, str], now: datetime
) -> Mapping[str, ClassPower]:
    """Return classes with the spare that was learned of each, by the working hours of the site."""
    zone = settings.reports.zone
    longest = max((limits.lead for limits in classes.values()), default=timedelta(0))
    known = store.power.read_requests(now - MEMORY, longest)
    requests = [replace(request, at=request.at.astimezone(zone)) for request in known]
    return learn_spares(classes, groups, requests, now=now.astimezone(zone))
