# SPDX-License-Identifier: Apache-2.0
"""The classes of what may sleep: a spare of one is of no use to who asks for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass, field, replace
from blazar.model.power.learning import NearRequest, learn_lead, learn_spare, learn_wake
from blazar.model.power.settings import ClassPower, SpareSource
from blazar.model.power.spare_rules import SpareRule, write_value
from blazar.model.resources.resource import HOST, VOLUME, PropertyValue, Resource

POWERED = (HOST, VOLUME)
"""The kinds of what may sleep."""


def find_values(resource: Resource, class_by: Sequence[str]) -> Mapping[str, PropertyValue | None]:
    """Return what tells the class of a host from others: its values of these properties, None for one it has not."""
    return {name: resource.properties.get(name) for name in class_by} if resource.kind == HOST else {}


def find_group(resource: Resource, class_by: Sequence[str]) -> str:
    """Return the class of a resource, as ``gpu=A100, rack=7``: empty for hosts that nothing tells apart.

    What is no host is a class of its own, by its kind.
    """
    if resource.kind != HOST:
        return str(resource.kind)
    values = find_values(resource, class_by).items()
    return ", ".join(f"{name}={write_value(value)}" for name, value in values)


@dataclass(frozen=True, slots=True)
class LearnedClasses:
    """What is known of classes ``since`` an instant: what holds for each, and the class of each host by calendar id.

    ``values`` has those of the properties of each class of hosts.
    """

    since: datetime
    classes: Mapping[str, ClassPower]
    groups: Mapping[int, str]
    values: Mapping[str, Mapping[str, PropertyValue | None]] = field(default_factory=dict)

    @property
    def lead(self) -> timedelta:
        """Return the longest lead of all classes: what begins later finds its hosts awake, whichever they are."""
        return max((limits.lead for limits in self.classes.values()), default=ClassPower().lead)

    @property
    def wakes(self) -> Mapping[int, timedelta]:
        """Return how long a wake of each host takes, by calendar id."""
        return {id_: self.classes[group].wake for id_, group in self.groups.items()}


@dataclass(frozen=True, slots=True)
class PastWake:
    """A wake that succeeded: of which host, by calendar id, and how long it ``took``."""

    resource_id: int
    took: timedelta


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A host, by calendar id, that a lease has got: when that was asked for, and how long ``ahead`` of its start."""

    lease_id: str
    resource_id: int
    at: datetime
    ahead: timedelta


def learn_classes(groups: Mapping[int, str], wakes: Iterable[PastWake], timeout: timedelta) -> Mapping[str, ClassPower]:
    """Return the lead and the time of a wake of each class that hosts have, from what is known of their wakes.

    ``groups`` has the class of each host by calendar id.
    """
    durations: dict[str, list[timedelta]] = {group: [] for group in groups.values()}
    for wake in wakes:
        if wake.resource_id in groups:
            durations[groups[wake.resource_id]].append(wake.took)
    return {group: ClassPower(learn_lead(took, timeout), 0, learn_wake(took)) for group, took in durations.items()}


def learn_spares(
    classes: Mapping[str, ClassPower], groups: Mapping[int, str], requests: Iterable[HostRequest], *, now: datetime
) -> Mapping[str, ClassPower]:
    """Return classes with the spare of each, from the hosts that were asked for of late. Instants as in learn_spare."""
    near: dict[tuple[str, str, datetime], int] = {}
    for request in requests:
        group = groups.get(request.resource_id)
        if group is not None and request.ahead < classes[group].lead:
            key = (group, request.lease_id, request.at)
            near[key] = near.get(key, 0) + 1
    sizes = Counter(groups.values())
    found = {}
    for group, limits in classes.items():
        mine = (NearRequest(at, hosts) for (of, _, at), hosts in near.items() if of == group)
        spare = learn_spare(mine, sizes[group], now=now)
        found[group] = replace(limits, spare=spare.hosts, spare_source=spare.source, asked_at_once=spare.asked)
    return found


def fix_spares(
    classes: Mapping[str, ClassPower],
    values: Mapping[str, Mapping[str, PropertyValue | None]],
    rules: Sequence[SpareRule],
    usual: int | None,
    at: datetime,
) -> Mapping[str, ClassPower]:
    """Return classes with the spare that holds at an instant in the time of the site; the first rule that fits counts.

    ``values`` has those of each class that has a spare. Where no rule fits it is the ``usual`` one; None: that which
    ``classes`` have, as it was learned.
    """
    found = dict(classes)
    for group, mine in values.items():
        rule = _find_rule(rules, mine, at)
        hosts = usual if rule is None else rule.hosts
        if hosts is not None:
            text = "" if rule is None else rule.text
            found[group] = replace(
                found[group], spare=hosts, spare_source=SpareSource.FIXED, spare_rule=text, asked_at_once=0
            )
    return found


def _find_rule(
    rules: Iterable[SpareRule], values: Mapping[str, PropertyValue | None], at: datetime
) -> SpareRule | None:
    return next((rule for rule in rules if rule.holds(values, at)), None)
