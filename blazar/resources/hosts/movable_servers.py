# SPDX-License-Identifier: Apache-2.0
"""Which servers of others may be moved off a host, and how: as Nova can, and as their owners allow."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.calendar.evacuation.values import HostedServer
from blazar.clouds.ports.evacuation import Occupant as Server
from blazar.clouds.ports.evacuation import Special
from blazar.model.base.values import dataclass
from blazar.resources.hosts.preemptibles import OURS

KEEP = "blazar:keep"
"""The tag with which owners keep a server where it is."""

LIVE = frozenset({"ACTIVE", "PAUSED"})
COLD = frozenset({"SHUTOFF"})

_REFUSED = frozenset({Special.PCI, Special.VGPU, Special.VTPM, Special.SEV, Special.ACCELERATOR, Special.PMEM})
"""What Nova does not move, or only between hosts that are alike in what we do not know."""

_TRAIT = "trait:"


@dataclass(frozen=True, slots=True)
class Within:
    """A reservation whose own servers are moved, to another of its hosts."""

    reservation_id: str
    project_id: str


def make_hosted_server(
    server: Server,
    here: frozenset[str],
    never: frozenset[str],
    *,
    avoid: frozenset[str] = frozenset(),
    within: Within | None = None,
) -> HostedServer:
    """Return a server as a plan needs it.

    ``here`` are the ids of all servers on its host, ``never`` the projects whose servers stay. ``avoid`` are the hosts
    that it could not be moved to. ``within``: it may move if it belongs to this reservation, and not to none.
    """
    group = server.group
    policy = "" if group is None else group.policy.removeprefix("soft-")
    soft = group is not None and group.policy.startswith("soft-")
    return HostedServer(
        server.id,
        server.project_id,
        server.amounts,
        copied_gib=server.disk_gb,
        live=server.status in LIVE,
        traits=_required_traits(server.extra_specs),
        together=group.id if group is not None and policy == "affinity" and not soft else "",
        apart=group.id if group is not None and policy == "anti-affinity" and not soft else "",
        obstacle=_obstacle_to_move(server, here, never, within),
        avoid=avoid,
    )


def _required_traits(extra_specs: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        key.removeprefix(_TRAIT) for key, value in extra_specs.items() if key.startswith(_TRAIT) and value == "required"
    )


def _obstacle_to_move(server: Server, here: frozenset[str], never: frozenset[str], within: Within | None) -> str:
    if server.locked:
        return "it is locked"
    if KEEP in server.tags:
        return f"it has the tag {KEEP}"
    if server.project_id in never:
        return "servers of its project are never moved"
    if within is not None and server.project_id != within.project_id:
        return "it belongs to another project than the lease"
    own = frozenset[str]() if within is None else frozenset({within.reservation_id})
    if (server.hints or frozenset()) - own or any(key.startswith(OURS) for key in server.extra_specs):
        return "it belongs to another lease"
    if server.task_state is not None:
        return f"it is {server.status} and busy ({server.task_state})"
    if server.status not in LIVE | COLD:
        return f"it is {server.status}"
    if refused := sorted(server.specials & _REFUSED):
        return f"its flavor has devices that cannot be moved ({', '.join(refused)})"
    if server.group is not None and server.group.policy == "affinity":
        if within is not None and len(server.group.members) > 1:
            # Nova lets the first of them go to no host without the others.
            return "its server group has affinity"
        if not server.group.members <= here:
            return "servers of its group are on other hosts"
    return ""
