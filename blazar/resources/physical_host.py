"""physical:host: whole compute hosts, handed over as a host aggregate of their own."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta

from blazar.clouds.ports import Cloud
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput, NotEnoughResources
from blazar.model.lease import Parameters, ReservationStatus
from blazar.model.requirements import Requirement, all_of, keys, matches, parse_requirement
from blazar.model.resource import ResourceKind
from blazar.resources.base import Done, NotYet, Progress, Work
from blazar.resources.pools import HostPools, PoolNames
from blazar.resources.snapshots import Snapshots

RESOURCE_TYPE = "physical:host"

HOST_PROPERTIES = frozenset(
    {
        "id",
        "vcpus",
        "cpu_info",
        "hypervisor_type",
        "hypervisor_version",
        "hypervisor_hostname",
        "service_name",
        "memory_mb",
        "local_gb",
        "status",
        "availability_zone",
        "reservable",
        "created_at",
        "updated_at",
    }
)
"""What every host tells about itself, and a requirement may ask about."""

BEFORE_END_ACTIONS = ("default", "", "none", "notification", "snapshot", "migration")
REQUIREMENTS = ("hypervisor_properties", "resource_properties")
MOST_HOSTS = 2**31 - 1
LOOK_AGAIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How an operator runs host reservations; the names and defaults are those of ``blazar.conf``."""

    pools: PoolNames = PoolNames()
    before_end: str = ""
    image_prefix: str = "reserved_"


class PhysicalHost:
    """The resource type ``physical:host``."""

    resource_type = RESOURCE_TYPE
    kind = ResourceKind.HOST

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        self._cloud = cloud
        self._settings = settings
        self._pools = HostPools(cloud.compute, settings.pools)
        self._snapshots = Snapshots(cloud.compute, settings.image_prefix)

    def parameters(self, given: Parameters) -> Parameters:
        """Return min, max, both requirements and ``before_end``; keys of other types are left out."""
        missing = [key for key in ("min", "max", *REQUIREMENTS) if key not in given]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a physical:host reservation needs min, max, "
                f"hypervisor_properties and resource_properties; the latter two may be empty)"
            )
        return _checked({**given, "before_end": given.get("before_end", "default")})

    def changed(self, current: Parameters, change: Parameters) -> Parameters:
        """Return the current parameters with the known ones of ``change`` laid over them."""
        return _checked({**current, **{key: value for key, value in change.items() if key in current}})

    def demand(self, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Ask for ``min`` to ``max`` whole hosts that meet both requirements."""
        requirement = _requirement(parameters)
        unknown = sorted(keys(requirement) - HOST_PROPERTIES - known)
        if unknown:
            raise InvalidInput(
                f"resource_properties or hypervisor_properties ask for {', '.join('$' + key for key in unknown)}, "
                f"which no host has; use a property of the hosts, such as $vcpus, or one of their capabilities"
            )
        return Demand(
            kind=self.kind,
            min_units=parameters["min"],
            max_units=parameters["max"],
            requirement=requirement,
        )

    def demand_again(self, work: Work, parameters: Parameters, *, known: frozenset[str]) -> Demand:
        """Ask for the hosts held and more; a reservation in use keeps every host that it has."""
        fresh = self.demand(parameters, known=known)
        held = frozenset(resource.id for resource in work.resources)
        if work.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=held)
        if fresh.max_units < len(held):
            raise NotEnoughResources(
                f"reservation {work.reservation.id} is in use on {len(held)} hosts and can not shrink to "
                f"max {fresh.max_units}; a reservation can only grow while it is active"
            )
        if fresh.requirement != _requirement(work.reservation.parameters):
            misfits = sorted(r.name for r in work.resources if not matches(fresh.requirement, r.properties))
            if misfits:
                raise NotEnoughResources(
                    f"reservation {work.reservation.id} is in use on {', '.join(misfits)}, which would no longer "
                    f"match; a reservation keeps its hosts while it is active"
                )
        asked = {key: parameters[key] for key in ("min", "max")}
        grows = asked != {key: work.reservation.parameters[key] for key in ("min", "max")}
        if not grows:
            # New dates alone never bring new hosts into a reservation that people work on.
            return replace(fresh, min_units=max(1, len(held)), max_units=max(1, len(held)), pinned=held)
        return replace(fresh, min_units=max(fresh.min_units, len(held)), pinned=held)

    def prepare(self, work: Work) -> Parameters:
        """Ensure the reservation's aggregate, empty until the start."""
        aggregate = self._pools.ensure_pool(work.reservation.id, project_id=work.lease.project_id)
        return {"aggregate_id": aggregate.id}

    def start(self, work: Work) -> Progress:
        """Ensure that the hosts are in the reservation's aggregate, and there only."""
        self._pools.hand_over(
            work.reservation.id,
            hosts=tuple(str(resource.attributes["service_name"]) for resource in work.resources),
            project_id=work.lease.project_id,
        )
        return Done()

    def before_end(self, work: Work) -> Progress:
        """Ensure an image of every server in the reservation, if that is the action; else do nothing."""
        action = work.reservation.parameters["before_end"]
        if action == "default":
            action = self._settings.before_end
        if action != "snapshot":
            return Done()
        unfinished = self._snapshots.ensure(work.reservation.id, hosts=self._pools.hosts_of(work.reservation.id))
        if unfinished:
            return NotYet(LOOK_AGAIN, f"{unfinished} snapshots are being made")
        return Done()

    def end(self, work: Work) -> Progress:
        """Ensure that all servers are gone, all hosts back in the freepool and the aggregate deleted."""
        return self._return(work, hosts=None)

    def give_back(self, work: Work) -> Progress:
        """Ensure that these hosts are free of servers and back in the freepool."""
        return self._return(work, hosts=frozenset(str(r.attributes["service_name"]) for r in work.resources))

    def _return(self, work: Work, *, hosts: frozenset[str] | None) -> Progress:
        left = self._pools.take_back(work.reservation.id, hosts=hosts)
        if left:
            return NotYet(LOOK_AGAIN, f"{left} servers are being deleted")
        return Done()


def _checked(parameters: Parameters) -> Parameters:
    least = _count(parameters["min"], "min")
    most = _count(parameters["max"], "max")
    if most < least:
        raise InvalidInput(f"max ({most}) is less than min ({least}); give a max that is at least min")
    action = parameters["before_end"]
    if action not in BEFORE_END_ACTIONS:
        raise InvalidInput(f"before_end is {_quoted(action)}; use 'default', 'snapshot' or ''")
    texts = {field: _requirement_text(parameters[field], field) for field in REQUIREMENTS}
    return {"min": least, "max": most, **texts, "before_end": action}


def _count(value: object, field: str) -> int:
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        number = int(value)
    if number is None or not 1 <= number <= MOST_HOSTS:
        raise InvalidInput(f"{field} is {_quoted(value)}; give a whole number of hosts, at least 1")
    return number


def _requirement_text(value: object, field: str) -> str | None:
    parse_requirement(value, field=field)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _requirement(parameters: Parameters) -> Requirement:
    return all_of(*(parse_requirement(parameters[field], field=field) for field in REQUIREMENTS))


def _quoted(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
