# SPDX-License-Identifier: Apache-2.0
"""What must hold of a cloud at rest: it has what the live leases are promised, wholly, and nothing else of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime

from blazar.clouds.ports.compute import Flavor, Server
from blazar.clouds.ports.segments import Segment
from blazar.clouds.ports.stacks import CREATE
from blazar.clouds.simulated import State
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventStatus, LeaseStatus
from blazar.model.resources.resource import DEVICE, GENERIC, HOST
from blazar.resources.floating_ips.registration import BLAZAR, name_of, reservation_tag
from blazar.resources.instances.reservation_flavor import flavor_name, resource_class
from blazar.resources.networks.registration import name_of as segment_name
from blazar.store.store import Store
from tests.people import PeopledCloud
from tests.promises import check_promises

PHYSICAL_HOST = "physical:host"
ADDRESS = "virtual:floatingip"
NETWORK = "network"
VOLUME = "virtual:volume"
SERVER = "virtual:server"
THINGS = ("device", "generic")
STACK = "virtual:stack"
BESIDE_HOSTS = (ADDRESS, NETWORK, VOLUME, STACK, *THINGS)
"""Types that have nothing on hosts."""
ZONES = ("az-1", "az-2")
SETTLED = frozenset({LeaseStatus.ACTIVE, LeaseStatus.PENDING, LeaseStatus.TERMINATED})
ON_THE_LIST = frozenset({LeaseStatus.WAITING, LeaseStatus.TIMED_OUT})
"""States in which a lease has nothing, and needs no event."""


def check_at_rest(store: Store, cloud: PeopledCloud, *, now: datetime, offered: Collection[Flavor] = ()) -> None:
    """Check the books and the cloud, when no manager has anything left to do."""
    leases = store.leases.of_project(None)
    check_events(store, leases)
    check_promises(store, since=now)
    working = cloud.operators.list_servers()
    live = [lease for lease in leases if lease.status not in {*ON_THE_LIST, LeaseStatus.TERMINATED}]
    with cloud.inspect() as state:
        state.block.remove_gone(now)
        check_cloud(store, state, working, live, offered=offered)
        check_stacks(state, live, now=now)


def check_events(store: Store, leases: Collection[Lease]) -> None:
    """Check that every lease is settled, and that no event of any lease, past ones included, is IN_PROGRESS."""
    everything = [store.leases.one(lease.id, including_deleted=True) for lease in (*leases, *store.leases.load_past())]
    stuck = [(lease.id, e) for lease in everything for e in lease.events if e.status is EventStatus.IN_PROGRESS]
    assert not stuck, f"events are worked on for ever: {stuck}"
    unsettled = [
        (lease.id, lease.status, lease.events) for lease in leases if lease.status not in SETTLED | ON_THE_LIST
    ]
    assert not unsettled, f"leases are not settled: {unsettled}"


def check_cloud(
    store: Store,
    state: State,
    working: Iterable[Server],
    leases: Collection[Lease],
    *,
    offered: Collection[Flavor] = (),
) -> None:
    """Check that what is in the cloud is what these leases have, wholly, and nothing else."""
    aggregates = {a.name: a for a in state.aggregates.values()}
    assert len(aggregates) == len(state.aggregates), "an aggregate is there twice"
    everything = [(lease, r) for lease in leases for r in lease.reservations]
    on_hosts = [(lease, r) for lease, r in everything if r.resource_type not in BESIDE_HOSTS]
    hosts = [(lease, r) for lease, r in on_hosts if r.resource_type == PHYSICAL_HOST]
    servers = [(lease, r) for lease, r in on_hosts if r.resource_type != PHYSICAL_HOST]
    names = {"freepool", *ZONES, *(r.id for _, r in on_hosts)}
    # What a lease got by surgery before its start is made at its start.
    later = {r.id for lease, r in hosts if lease.status is LeaseStatus.PENDING and not r.cloud_ids.values}
    left = (set(aggregates) ^ names) - later
    assert not left, f"aggregates are left over, or missing: {left}"
    check_flavors(state, [r for _, r in servers], offered)
    assert sorted(state.classes) == sorted(resource_class(r.id) for _, r in servers), "a class is left over, or missing"
    grouped = sorted(flavor_name(r.id) for _, r in servers if r.parameters.values["affinity"] is not None)
    assert sorted(group.name for group in state.groups.values()) == grouped, "a server group is left over, or missing"

    held: set[str] = set()
    for lease, reservation in hosts:
        pool = aggregates.get(reservation.id)
        inside = set(pool.hosts) if pool else set()
        if lease.status is LeaseStatus.ACTIVE:
            assert inside == set(promised(store, lease, reservation)), "a reservation has other hosts than promised"
            assert not inside & held, "a host is in two reservations"
            held |= inside
        else:
            assert not inside, "a reservation that has not started has hosts"
    slots: dict[str, dict[str, int]] = {}
    for lease, reservation in servers:
        inside = set(aggregates[reservation.id].hosts)
        projects = state.flavors[reservation.id].projects
        if lease.status is LeaseStatus.ACTIVE:
            room = promised(store, lease, reservation)
            assert inside == set(room), "a reservation of servers has other hosts than promised"
            assert not set(room) & held, "a host is shared and alone"
            booted = [s for s in working if s.flavor == flavor_name(reservation.id)]
            if reservation.resource_type == SERVER:
                assert projects == [], "others can boot servers where the service has booted its own"
                where = Counter(s.host for s in booted if s.status == "ACTIVE")
                assert where == room, f"the servers of a reservation are on {where}, not on {room}"
            else:
                assert projects == [lease.project_id], "the project of an active lease cannot boot servers"
            for host, count in room.items():
                slots.setdefault(host, {})[resource_class(reservation.id)] = count
        else:
            assert (inside, projects) == (set(), []), "a reservation that has not started is open"
    totals = {host: found for host, found in state.inventories.items() if found}
    assert totals == slots, f"reserved capacity is not as promised: {totals} instead of {slots}"
    # One that can be emptied is open to all while no lease has it.
    registered = {str(h.attributes["service_name"]) for h in store.resources.of_kind(HOST) if not h.evacuable}
    freepool = set(aggregates["freepool"].hosts)
    free = registered - held
    assert freepool == free, f"hosts are lost, or free although promised: {freepool ^ free}"
    everybody = {host.service_name for host in state.hosts.values()}
    zoned = {host for zone in ZONES for host in aggregates[zone].hosts}
    assert zoned == everybody - held, "a host has not returned to its zone"
    for server in working:
        theirs = slots.get(server.host or "", {})
        reservation_id = (server.flavor or "").removeprefix(flavor_name(""))
        at_home = server.host in held or resource_class(reservation_id) in theirs
        assert at_home or server.host in everybody - registered, f"a server is left over: {server}"
    check_addresses(store, state, [each for each in everything if each[1].resource_type == ADDRESS])
    check_networks(store, state, [each for each in everything if each[1].resource_type == NETWORK])
    check_volumes(store, state, [each for each in everything if each[1].resource_type == VOLUME])
    check_things(store, state, [each for each in everything if each[1].resource_type in THINGS])


def check_flavors(state: State, servers: Collection[Reservation], offered: Collection[Flavor]) -> None:
    """Check that there is a flavor for every reservation of servers, and those that operators offer."""
    own = {r.id for r in servers}
    assert set(state.flavors) == own | {flavor.id for flavor in offered}, "a flavor is left over, or missing"
    for reservation in servers:
        copy = state.flavors[reservation.id]
        sizes = tuple(reservation.parameters.values[size] for size in ("vcpus", "memory_mb", "disk_gb"))
        assert (copy.vcpus, copy.memory_mb, copy.disk_gb) == sizes, "a flavor has not the size of its reservation"
        if reservation.resource_type == "flavor:instance":
            source = state.flavors[str(reservation.parameters.values["flavor_id"])]
            assert (source.vcpus, source.memory_mb, source.disk_gb) == sizes
            assert copy.extra_specs.items() >= source.extra_specs.items()
    for flavor in offered:
        assert state.flavors[flavor.id].extra_specs == flavor.extra_specs, "somebody else's flavor was changed"


def check_addresses(store: Store, state: State, reservations: Iterable[tuple[Lease, Reservation]]) -> None:
    """Check that projects have the addresses that are promised to their active leases, with tags, and no others."""
    wanted = {
        (name, lease.project_id, frozenset((BLAZAR, reservation_tag(reservation.id))))
        for lease, reservation in reservations
        if lease.status is LeaseStatus.ACTIVE
        for name in promised(store, lease, reservation)
    }
    found = [(name_of(f.network_id, f.address), f.project_id, frozenset(f.tags)) for f in state.floating_ips.values()]
    assert len(found) == len(set(found)), "a floating IP is there twice"
    assert set(found) == wanted, f"floating IPs are left over, or missing: {set(found) ^ wanted}"


def check_volumes(store: Store, state: State, reservations: Iterable[tuple[Lease, Reservation]]) -> None:
    """Check that projects have the volumes of their active leases, on the promised pools, access and quota for them."""
    wanted: Counter[tuple[str, str]] = Counter()
    limits: Counter[tuple[str, str]] = Counter()
    made: Counter[tuple[str, str, str]] = Counter()
    for lease, reservation in reservations:
        if lease.status is LeaseStatus.ACTIVE:
            for pool, count in promised(store, lease, reservation).items():
                wanted[lease.project_id, pool] += count
                limits[lease.project_id, pool] += count * int(str(reservation.parameters.values["size"]))
                if reservation.parameters.values["mode"] == "volume":
                    made[reservation.id, lease.project_id, pool] += count
    there = state.block.volumes.values()
    found = Counter((v.metadata.get("blazar:reservation", ""), v.project_id, v.pool or "") for v in there)
    assert found == made, f"volumes are left over, or missing: {found} instead of {made}"
    pools = {each.pool_name: each.name for each in state.block.pools}
    for each in state.block.types.values():
        pool = pools[each.specs["pool_name"]]
        assert set(each.projects) == {project for project, where in wanted if where == pool}, "access is left over"
        for project in each.projects:
            quota = [state.block.quotas[project][f"{what}_{each.name}"] for what in ("gigabytes", "volumes")]
            assert quota == [limits[project, pool], wanted[project, pool]], f"the quota of {project} is {quota}"


def check_networks(store: Store, state: State, reservations: Iterable[tuple[Lease, Reservation]]) -> None:
    """Check that projects have the networks of their active leases, on the promised segments, and no others."""
    wanted = {
        (name, lease.project_id, frozenset((BLAZAR, reservation_tag(reservation.id))))
        for lease, reservation in reservations
        if lease.status is LeaseStatus.ACTIVE
        for name in promised(store, lease, reservation)
    }
    found = [
        (segment_name(Segment(n.network_type, n.physical_network, n.segment_id)), n.project_id, frozenset(n.tags))
        for n in state.networks.values()
        if n.network_type
    ]
    assert len(found) == len(set(found)), "a network is there twice"
    assert set(found) == wanted, f"networks are left over, or missing: {set(found) ^ wanted}"
    left = {port.network_id for port in state.ports.values()} - state.networks.keys()
    assert not left, f"ports are on networks that are gone: {left}"


def check_stacks(state: State, leases: Iterable[Lease], *, now: datetime) -> None:
    """Check that projects have the stacks of their active leases, complete, on servers of their own, and no others."""
    everything = [(lease, r) for lease in leases for r in lease.reservations if lease.status is LeaseStatus.ACTIVE]
    wanted = {(reservation_tag(r.id), lease.project_id) for lease, r in everything if r.resource_type == STACK}
    there = [stack for stack in state.stacks.values() if not stack.is_gone(now)]
    found = [(next(tag for tag in stack.tags if tag != BLAZAR), stack.project_id) for stack in there]
    assert len(found) == len(set(found)), "a stack is there twice"
    assert set(found) == wanted, f"stacks are left over, or missing: {set(found) ^ wanted}"
    spoiled = [
        (stack.id, stack.action, stack.reason) for stack in there if (stack.action, stack.reason) != (CREATE, "")
    ]
    assert not spoiled, f"stacks of active leases are not complete: {spoiled}"
    parents = {r.id: r.parent for _, r in everything}
    for stack in there:
        on = {state.servers[each.physical_id].flavor for each in stack.resources if each.type == "OS::Nova::Server"}
        assert {reservation_tag(parents[flavor]) for flavor in on} <= set(stack.tags), (
            "a stack has servers on what is not its own"
        )


def check_things(store: Store, state: State, reservations: Iterable[tuple[Lease, Reservation]]) -> None:
    """Check that things and devices know the active reservations that are promised them, and no others."""
    registered = {each.name: each for kind in (DEVICE, GENERIC) for each in store.resources.of_kind(kind)}
    wanted: dict[str, dict[str, int]] = {}
    for lease, reservation in reservations:
        if lease.status is LeaseStatus.ACTIVE:
            for name, count in promised(store, lease, reservation).items():
                whole = "amount" not in reservation.parameters.values
                thing = registered[name]
                amount = int(thing.attributes.get("capacity") or 1) if whole else count
                wanted.setdefault(thing.external_id, {})[reservation.id] = amount
    found = {id_: thing.users for id_, thing in state.things.items() if thing.users}
    assert found == wanted, f"things are handed over otherwise than promised: {found} instead of {wanted}"


def promised(store: Store, lease: Lease, reservation: Reservation) -> dict[str, int]:
    """Return the units that the calendar has promised to a reservation, by resource."""
    mine = [a for a in store.calendar.of_lease(lease.id) if a.reservation_id == reservation.id]
    names = {key: resource.name for key, resource in store.resources.by_ids({a.resource_id for a in mine}).items()}
    return dict(sum((Counter({names[a.resource_id]: a.count}) for a in mine), Counter()))
