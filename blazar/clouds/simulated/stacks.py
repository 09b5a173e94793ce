# SPDX-License-Identifier: Apache-2.0
"""The simulated Heat: stacks whose servers, networks, ports and floating IPs are those of the same cloud.

What a stack makes is there at once; its action is over after a while. Types that no other service here has get an id.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.clouds.ports.stacks import CREATE, DELETE, PlannedResource, Stack, StackExists, StackPlan, StackResource
from blazar.clouds.simulated.placement import count_used
from blazar.clouds.simulated.server_state import ServerState
from blazar.clouds.simulated.service import SimulatedService, check_role
from blazar.clouds.simulated.state import (
    FlavorState,
    FloatingIpState,
    HostState,
    NetworkState,
    PortState,
    StackResourceState,
    StackState,
    State,
    SubnetState,
)
from blazar.clouds.simulated.templates import EXTERNAL, Expansion, Where, refuse_template
from blazar.model.base.errors import Conflict, NotFound

SERVICE_USER = "blazar"
"""The service user, who makes the stacks of reservations and so all that is in them."""

_TURNS = ("OS::Neutron::Net", "OS::Neutron::Subnet", "OS::Neutron::Port")

_REQUIRED = {
    "OS::Neutron::Subnet": ("network", "cidr"),
    "OS::Neutron::Port": ("network",),
    "OS::Neutron::FloatingIPAssociation": ("floatingip_id",),
}
"""Properties that Heat refuses a template without, of those that this cloud looks at."""

_FLAVOR_OF_RESERVATION = "aggregate_instance_extra_specs:reservation"


class SimulatedStacks(SimulatedService):
    """Implements the stacks port; rules as in Heat 27."""

    def preview_stack(self, project_id: str, plan: StackPlan) -> tuple[PlannedResource, ...]:
        """Return the resources of a plan."""
        with self._calls.reading("preview_stack") as state:
            check_role(state, project_id)
            planned = tuple(resource for _, resource in Expansion(plan).resources())
            _check(state, project_id, planned)
            return planned

    def begin_stack(self, project_id: str, plan: StackPlan, *, tags: frozenset[str]) -> str:
        """Create a stack with all that is in it."""
        with self._calls.changing("begin_stack") as state:
            now = self._clock.now()
            check_role(state, project_id)
            if any(stack.name == plan.name for stack in self._stacks(state, project_id)):
                raise StackExists(f"The Stack ({plan.name}) already exists.")
            ids: dict[Where, str] = {}
            planned = Expansion(plan, partial(_id_of, ids)).resources()
            _check(state, project_id, [resource for _, resource in planned])
            made = [
                self._try_to_make(state, project_id, _id_of(ids, where), resource)
                for where, resource in sorted(planned, key=lambda pair: _making_order(pair[1]))
            ]
            stack = StackState(
                str(uuid.uuid4()),
                plan.name,
                project_id,
                CREATE,
                (now + self._durations.stack).isoformat(),
                "; ".join(f"Resource CREATE failed: {state.name}: {state.reason}" for state in made if state.reason),
                sorted(tags),
                made,
            )
            state.stacks[stack.id] = stack
            return stack.id

    def stacks_tagged(self, project_id: str, tag: str) -> tuple[Stack, ...]:
        """Return the stacks with a tag."""
        with self._calls.reading("stacks_tagged") as state:
            check_role(state, project_id)
            now = self._clock.now()
            return tuple(_stack(stack, now) for stack in self._stacks(state, project_id) if tag in stack.tags)

    def stacks_named(self, project_id: str, name: str) -> tuple[Stack, ...]:
        """Return the stacks with a name."""
        with self._calls.reading("stacks_named") as state:
            check_role(state, project_id)
            now = self._clock.now()
            return tuple(_stack(stack, now) for stack in self._stacks(state, project_id) if stack.name == name)

    def stack(self, project_id: str, stack_id: str) -> Stack | None:
        """Return a stack."""
        with self._calls.reading("stack") as state:
            check_role(state, project_id)
            found = self._stack(state, project_id, stack_id)
            return None if found is None else _stack(found, self._clock.now())

    def begin_stack_deletion(self, project_id: str, stack_id: str) -> None:
        """Delete what is in a stack; a network on which others have ports stays, and the deletion fails."""
        with self._calls.changing("begin_stack_deletion") as state:
            now = self._clock.now()
            check_role(state, project_id)
            stack = self._stack(state, project_id, stack_id)
            if stack is None:
                raise NotFound(f"The Stack ({stack_id}) could not be found.")
            stack.action, stack.reason, left = DELETE, "", []
            stack.over_at = (now + self._durations.stack).isoformat()
            for resource in sorted(stack.resources, key=_making_order, reverse=True):
                if reason := self._delete(state, resource):
                    stack.reason = f"Resource DELETE failed: Conflict: resources.{resource.name}: {reason}"
                    left.append(resource)
            stack.resources = left

    def stack_resources(self, project_id: str, stack_id: str) -> tuple[StackResource, ...]:
        """Return the resources of a stack."""
        with self._calls.reading("stack_resources") as state:
            check_role(state, project_id)
            found = self._stack(state, project_id, stack_id)
            if found is None:
                return ()
            now, state_now = self._clock.now(), found.state_at(self._clock.now())
            return tuple(
                StackResource(r.name, r.type, r.physical_id, "FAILED" if r.reason else state_now, r.reason)
                for r in found.resources
                if not found.is_gone(now)
            )

    def _stacks(self, state: State, project_id: str) -> list[StackState]:
        now = self._clock.now()
        return [s for s in state.stacks.values() if s.project_id == project_id and not s.is_gone(now)]

    def _stack(self, state: State, project_id: str, stack_id: str) -> StackState | None:
        return next((s for s in self._stacks(state, project_id) if s.id == stack_id), None)

    def _try_to_make(self, state: State, project_id: str, id: str, resource: PlannedResource) -> StackResourceState:
        """Make a resource, and return it with the reason if that failed."""
        if EXTERNAL in resource.properties:
            return StackResourceState(resource.name, resource.type, "")
        try:
            reason = self._make(state, project_id, id, resource)
        except Conflict as error:
            reason = error.message
        return StackResourceState(resource.name, resource.type, id, reason)

    def _make(self, state: State, project_id: str, id: str, resource: PlannedResource) -> str:
        """Make a resource; return why that cannot be."""
        properties = resource.properties
        name = str(properties.get("name") or resource.name)
        match resource.type:
            case "OS::Nova::Server":
                return self._boot(state, project_id, id, name, _flavor(state, project_id, properties["flavor"]))
            case "OS::Neutron::Net":
                state.networks[id] = NetworkState(id, name, external=False, project_id=project_id)
            case "OS::Neutron::Subnet":
                network = _network(state, properties["network"])
                network.subnets.append(SubnetState(id, str(properties["cidr"])))
            case "OS::Neutron::Port":
                network = _network(state, properties["network"])
                state.ports[id] = PortState(id, network.id, "", "", project_id)
            case "OS::Neutron::FloatingIP":
                network = _network(state, properties["floating_network"])
                port = properties.get("port_id") or None
                address = FloatingIpState(id, network.id, "", project_id, str(port) if port else None)
                state.floating_ips[id] = address
            case "OS::Neutron::FloatingIPAssociation":
                return _associate(state, str(properties["floatingip_id"]), properties.get("port_id"))
        return ""

    def _boot(self, state: State, project_id: str, id: str, name: str, flavor: FlavorState) -> str:
        now = self._clock.now()
        host = next((h for h in _hosts_for(state, flavor) if _has_room(state, h, flavor, now)), None)
        state.servers[id] = ServerState(
            id,
            name,
            project_id,
            SERVICE_USER,
            host.service_name if host else None,
            "ACTIVE" if host else "ERROR",
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            disk_gb=flavor.local_gb,
            flavor=flavor.id,
            flavor_name=flavor.name,
            extra_specs=dict(flavor.extra_specs),
            created_at=now.isoformat(),
        )
        return "" if host else "No valid host was found."

    def _delete(self, state: State, resource: StackResourceState) -> str:
        """Delete a resource; return why that cannot be."""
        id, now = resource.physical_id, self._clock.now()
        match resource.type:
            case "OS::Nova::Server" if id in state.servers and state.servers[id].gone_at is None:
                state.servers[id].gone_at = (now + self._durations.deletion).isoformat()
                state.remove_gone(now)
            case "OS::Neutron::Net":
                if any(port.network_id == id for port in state.ports.values()):
                    return f"Unable to complete operation on network {id}. There are one or more ports still in use"
                state.networks.pop(id, None)
            case "OS::Neutron::Port":
                state.ports.pop(id, None)
                for address in state.floating_ips.values():
                    address.port_id = None if address.port_id == id else address.port_id
            case "OS::Neutron::FloatingIP":
                state.floating_ips.pop(id, None)
        return ""


def _making_order(resource: PlannedResource | StackResourceState) -> int:
    """Return when a resource is made: after those that it may be on. They are deleted in the reverse order."""
    return _TURNS.index(resource.type) if resource.type in _TURNS else len(_TURNS)


def _associate(state: State, address_id: str, port_id: object) -> str:
    """Attach an address to a port, or to none; return why that cannot be."""
    if address_id not in state.floating_ips:
        return f"Floating IP {address_id} could not be found"
    state.floating_ips[address_id].port_id = str(port_id) if port_id else None
    return ""


def _id_of(ids: dict[Where, str], where: Where) -> str:
    return ids.setdefault(where, str(uuid.uuid4()))


def _check(state: State, project_id: str, planned: list[PlannedResource] | tuple[PlannedResource, ...]) -> None:
    """Refuse what lacks a property, or names a flavor or a network that the project does not have."""
    for resource in planned:
        properties: Mapping[str, object] = resource.properties
        if EXTERNAL in properties:
            continue
        if lacking := [name for name in _REQUIRED.get(resource.type, ()) if name not in properties]:
            raise refuse_template(
                f"Property error: resources.{resource.name}.properties: Property {lacking[0]} not assigned"
            )
        if resource.type == "OS::Nova::Server" and properties.get("flavor") is not None:
            _flavor(state, project_id, properties["flavor"])
        if resource.type == "OS::Neutron::FloatingIP" and properties["floating_network"] is not None:
            try:
                _network(state, properties["floating_network"])
            except Conflict as error:
                raise refuse_template(error.message) from error


def _flavor(state: State, project_id: str, wanted: object) -> FlavorState:
    for flavor in state.flavors.values():
        if wanted in (flavor.id, flavor.name) and (flavor.public or project_id in flavor.projects):
            return flavor
    raise refuse_template(f"The Flavor ID ({wanted}) could not be found.")


def _network(state: State, wanted: object) -> NetworkState:
    for network in state.networks.values():
        if wanted in (network.id, network.name):
            return network
    raise Conflict(f"Unable to find network with name or id '{wanted}'")


def _hosts_for(state: State, flavor: FlavorState) -> list[HostState]:
    """Return the hosts of a flavor: those of its reservation, in whatever aggregates, or all if it has none."""
    reservation = flavor.extra_specs.get(_FLAVOR_OF_RESERVATION)
    if reservation is None:
        return list(state.hosts.values())
    # All aggregates are looked at once, not for every host.
    own = [a.hosts for a in state.aggregates.values() if a.metadata.get("reservation") == reservation]
    inside = set().union(*own)
    return [host for host in state.hosts.values() if host.service_name in inside]


def _has_room(state: State, host: HostState, flavor: FlavorState, now: datetime) -> bool:
    """Return whether a server of a flavor can be on a host: one of a reservation needs its reserved capacity there."""
    prefix = f"resources:{CLASS_PREFIX}"
    classes = [key.removeprefix("resources:") for key in flavor.extra_specs if key.startswith(prefix)]
    totals = state.inventories.get(host.name, {})
    free = all(totals.get(n, 0) > count_used(state, host.name, n, now) for n in classes)
    return state.is_up(host, now) and host.enabled and free


def _stack(found: StackState, now: datetime) -> Stack:
    state = found.state_at(now)
    reason = found.reason if state == "FAILED" else ""
    return Stack(found.id, found.name, found.action, state, reason, frozenset(found.tags))
