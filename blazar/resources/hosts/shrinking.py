# SPDX-License-Identifier: Apache-2.0
"""Which hosts a reservation in use keeps when it is to have fewer: those with servers, and others up to its count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from blazar.model.base.errors import Conflict
from blazar.model.base.reasons import spell_count
from blazar.model.calendar.topology import Topology, describe_topology, do_lie
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task, UsageNeeded
from blazar.resources.hosts.lending import advise_lender

_NAMED = 10
"""More hosts than this are not named in a refusal."""


def choose_hosts_to_keep(task: Task, count: int, topology: Topology) -> frozenset[int]:
    """Return the ``count`` hosts, by calendar id, that a reservation in use keeps.

    It gives up those that are named, else empty ones, what has failed first. Conflict if servers run on one, or if
    groups of hosts would not stay whole; UsageNeeded.
    """
    if named := [resource for resource in task.resources if resource.id in task.given_up]:
        _check_named(task, named)
        kept = [resource for resource in task.resources if resource.id not in task.given_up]
    else:
        kept = _choose_by_count(task, count)
    together = topology.together
    if together is not None and together.size and do_lie(topology, task.resources) and not do_lie(topology, kept):
        raise Conflict(
            f"its hosts are {describe_topology(topology)}, and groups stay whole; name the hosts of whole groups in "
            "give_up",
            at="/give_up" if named else "/max",
        )
    return frozenset(resource.id for resource in kept)


def _check_named(task: Task, named: Collection[Resource]) -> None:
    used = replace(task, resources=tuple(named))
    if task.in_use is None:
        raise UsageNeeded(used)
    if busy := [resource for resource in named if task.in_use.get(resource.id)]:
        rule = f"a reservation in use gives up empty hosts only{advise_lender(task)}"
        raise _busy_error(busy, rule, "/give_up")


def _choose_by_count(task: Task, count: int) -> list[Resource]:
    if task.in_use is None:
        raise UsageNeeded(task)
    busy = [resource for resource in task.resources if task.in_use.get(resource.id)]
    if len(busy) > count:
        left = f"max can be {len(busy)} at least{advise_lender(task)}"
        raise _busy_error(busy, left, "/max")
    # What was emptied for the lease only its end returns to those who had it.
    bound = [resource for resource in task.resources if resource.evacuable and resource not in busy]
    if len(busy) + len(bound) > count:
        raise Conflict(
            f"max cannot be {count}: {spell_count(len(bound), 'host')} of the reservation, emptied for the lease, stay "
            "with it until its end",
            at="/max",
        )
    out = task.reservation.unassigned
    free = [resource for resource in task.resources if resource not in busy and resource not in bound]
    free.sort(key=lambda resource: (resource.id in out or bool(resource.failure), resource.id))
    return [*busy, *bound, *free[: count - len(busy) - len(bound)]]


def _busy_error(busy: Collection[Resource], rule: str, at: str) -> Conflict:
    noun = "host" if len(busy) == 1 else "hosts"
    sentence = "servers run on {noun} {names}; move or delete them first: {rule}"

    def told(names: list[str]) -> str:
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        return sentence.format(noun=noun, names=", ".join([*names[:_NAMED], *more]), rule=rule)

    return Conflict(
        told(sorted(resource.name for resource in busy)),
        public=told(sorted(resource.label for resource in busy)),
        code="host_has_servers",
        at=at,
    )
