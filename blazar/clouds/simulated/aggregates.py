# SPDX-License-Identifier: Apache-2.0
"""The simulated Nova: hypervisors and host aggregates."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.clouds.ports.compute import Aggregate, AggregateList, Hypervisor
from blazar.clouds.shared_read import SharedRead
from blazar.clouds.simulated.service import Calls, Durations, SimulatedService, look_up
from blazar.clouds.simulated.state import AggregateState, HostState, State
from blazar.model.base.clock import Clock
from blazar.model.base.errors import Conflict, NotFound

DEFAULT_ZONE = "nova"


class SimulatedAggregates(SimulatedService):
    """Implements the roles of hypervisors and aggregates."""

    def __init__(self, calls: Calls, clock: Clock, durations: Durations) -> None:
        super().__init__(calls, clock, durations)
        self._shared_aggregates = SharedRead(self._read_aggregates)

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""
        with self._calls.reading("hypervisors") as state:
            zones, now = _zones(state), self._clock.now()
            return tuple(_hypervisor(host, zones, up=state.is_up(host, now)) for host in state.hosts.values())

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname."""
        with self._calls.reading("hypervisor") as state:
            found = state.hosts.get(id) if id is not None else None
            if id is None:
                found = next((host for host in state.hosts.values() if host.name == hostname), None)
            if found is None:
                raise NotFound(f"the cloud has no hypervisor {id if id is not None else hostname!r}")
            return _hypervisor(found, _zones(state), up=state.is_up(found, self._clock.now()))

    def disable_service(self, service_name: str, reason: str) -> None:
        """Disable the nova-compute of a host with a reason."""
        with self._calls.changing("disable_service") as state:
            for host in _of_service(state, service_name):
                host.enabled, host.disabled_reason = False, reason

    def enable_service(self, service_name: str) -> None:
        """Enable the nova-compute of a host."""
        with self._calls.changing("enable_service") as state:
            for host in _of_service(state, service_name):
                host.enabled, host.disabled_reason = True, None

    def aggregates(self) -> AggregateList:
        """Return all aggregates."""
        return self._shared_aggregates()

    def _read_aggregates(self) -> AggregateList:
        with self._calls.reading("aggregates") as state:
            return AggregateList(_aggregate(aggregate) for aggregate in state.aggregates.values())

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate of this name."""
        with self._calls.reading("aggregate") as state:
            found = next((a for a in state.aggregates.values() if a.name == name), None)
            return _aggregate(found) if found else None

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate."""
        with self._calls.changing("create_aggregate") as state:
            if any(a.name == name for a in state.aggregates.values()):
                raise Conflict(f"there is an aggregate {name} already")
            made = state.add_aggregate(name, availability_zone)
            made.metadata.update(metadata)
            return _aggregate(made)

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set and remove metadata."""
        with self._calls.changing("set_aggregate_metadata") as state:
            aggregate = look_up(state.aggregates, aggregate_id, "aggregate")
            for key, value in metadata.items():
                if value is None:
                    aggregate.metadata.pop(key, None)
                else:
                    aggregate.metadata[key] = value

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate that has no hosts."""
        with self._calls.changing("delete_aggregate") as state:
            aggregate = look_up(state.aggregates, aggregate_id, "aggregate")
            if aggregate.hosts:
                raise Conflict(f"aggregate {aggregate.name} has hosts")
            del state.aggregates[aggregate_id]

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate, if that leaves it in one zone and does not move its servers to another."""
        with self._calls.changing("add_host") as state:
            aggregate = look_up(state.aggregates, aggregate_id, "aggregate")
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise NotFound(f"the cloud has no compute host {service_name}")
            if service_name in aggregate.hosts:
                raise Conflict(f"host {service_name} is in aggregate {aggregate.name} already")
            zones = _zones_of(state, service_name)
            if aggregate.zone and zones and zones != {aggregate.zone}:
                raise Conflict(f"host {service_name} is in zone {', '.join(sorted(zones))}")
            if aggregate.zone and not zones and state.occupants(service_name, self._clock.now()):
                raise Conflict(f"host {service_name} runs servers and would change its zone")
            aggregate.hosts.append(service_name)

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Remove a host from an aggregate, if that does not move its servers to another zone."""
        with self._calls.changing("remove_host") as state:
            aggregate = look_up(state.aggregates, aggregate_id, "aggregate")
            if all(host.service_name != service_name for host in state.hosts.values()):
                raise NotFound(f"the cloud has no compute host {service_name}")
            if service_name not in aggregate.hosts:
                raise NotFound(f"host {service_name} is not in aggregate {aggregate.name}")
            others = [a for a in state.aggregates.values() if a.id != aggregate_id and service_name in a.hosts]
            loses = aggregate.zone is not None and all(a.zone != aggregate.zone for a in others)
            if loses and state.occupants(service_name, self._clock.now()):
                raise Conflict(f"host {service_name} runs servers and would change its zone")
            aggregate.hosts.remove(service_name)


def _zones_of(state: State, service_name: str) -> set[str]:
    return {a.zone for a in state.aggregates.values() if a.zone and service_name in a.hosts}


def _zones(state: State) -> Mapping[str, str]:
    return {host: a.zone for a in state.aggregates.values() if a.zone for host in a.hosts}


def _aggregate(aggregate: AggregateState) -> Aggregate:
    return Aggregate(aggregate.id, aggregate.name, aggregate.zone, tuple(aggregate.hosts), dict(aggregate.metadata))


def _of_service(state: State, service_name: str) -> list[HostState]:
    found = [host for host in state.hosts.values() if host.service_name == service_name]
    if not found:
        raise NotFound(f"the cloud has no nova-compute on {service_name}")
    return found


def _hypervisor(host: HostState, zones: Mapping[str, str], *, up: bool) -> Hypervisor:
    return Hypervisor(
        id=host.id,
        hypervisor_hostname=host.name,
        service_name=host.service_name,
        hypervisor_type=host.hypervisor_type,
        hypervisor_version=host.hypervisor_version,
        vcpus=host.vcpus,
        memory_mb=host.memory_mb,
        local_gb=host.local_gb,
        cpu_info=host.cpu_info,
        # Nova lists no host in a zone that is disabled.
        availability_zone=zones.get(host.service_name, DEFAULT_ZONE) if host.enabled else "",
        up=up,
        enabled=host.enabled,
        disabled_reason=host.disabled_reason,
    )
