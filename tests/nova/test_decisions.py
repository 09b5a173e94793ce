# SPDX-License-Identifier: Apache-2.0
"""The rules alone: every row of the decision table, and what holds for all of them."""

from __future__ import annotations

from itertools import product

import pytest
from blazarnova.scheduler.decisions import Decision, Host, Pool, Request, Rules, decide, host_in, names_in

RULES = Rules()
PREEMPTIBLES = Rules(allow_preemptibles=True)
OWN_AGGREGATE = Rules(allow_preemptibles=True, preemptible_pool="spot")

FREEPOOL = Pool(name="freepool")
SPOT = Pool(name="spot")
OWN = Pool(name="r1", reserved=True, owner="alice")
SHARED = Pool(name="r1", reserved=True, owner="bob", guests=frozenset({"alice"}))
FOREIGN = Pool(name="r1", reserved=True, owner="bob", guests=frozenset({"carol"}))
SECOND = Pool(name="r2", reserved=True, owner="alice")
OWNERLESS = Pool(name="r1", reserved=True)


def alice(**more):
    return Request(project_id="alice", **more)


def hinted(*names, **more):
    return alice(reservations=frozenset(names), **more)


def on(*pools):
    return Host("compute-1", pools)


TABLE = {
    # Row 1
    "a project that was let in gets the host of the reservation": (
        (hinted("r1"), on(SHARED), RULES),
        Decision.OWN_RESERVATION,
    ),
    "one of several names is enough": ((hinted("r0", "r1"), on(SHARED), RULES), Decision.OWN_RESERVATION),
    "a project that was let in into the freepool gets its hosts by naming it": (
        (hinted("freepool"), on(Pool(name="freepool", guests=frozenset({"alice"}))), RULES),
        Decision.OWN_RESERVATION,
    ),
    # Row 2
    "the owner gets the host of the reservation": ((hinted("r1"), on(OWN), RULES), Decision.OWN_RESERVATION),
    "a host that changes hands passes for the new owner": (
        (hinted("r1"), on(OWN, FREEPOOL), RULES),
        Decision.OWN_RESERVATION,
    ),
    # Row 3
    "somebody else's reservation is refused": ((hinted("r1"), on(FOREIGN), RULES), Decision.FOREIGN_RESERVATION),
    "only the first pool that the hint names counts": (
        (hinted("r1", "r2"), on(FOREIGN, SECOND), RULES),
        Decision.FOREIGN_RESERVATION,
    ),
    "a hint does not open the freepool": ((hinted("freepool"), on(FREEPOOL), RULES), Decision.FOREIGN_RESERVATION),
    "a hint does not open a pool without an owner to a request without a project": (
        (Request(reservations=frozenset({"r1"})), on(OWNERLESS), RULES),
        Decision.FOREIGN_RESERVATION,
    ),
    "an own reservation does not open another pool": ((hinted("r1"), on(SECOND), RULES), Decision.NOT_IN_RESERVATION),
    "a hint keeps a server off the freepool": ((hinted("r1"), on(FREEPOOL), RULES), Decision.NOT_IN_RESERVATION),
    "a hint keeps a server off hosts in no pool": ((hinted("r1"), on(), RULES), Decision.NOT_IN_RESERVATION),
    "a hint outranks the flavor of a reservation": (
        (hinted("r1", reservation_flavor=True), on(), RULES),
        Decision.NOT_IN_RESERVATION,
    ),
    "a hint outranks a preemptible flavor": (
        (hinted("r1", preemptible=True), on(FREEPOOL), PREEMPTIBLES),
        Decision.NOT_IN_RESERVATION,
    ),
    # Row 4
    "the flavor of a reservation passes in the freepool": (
        (alice(reservation_flavor=True), on(FREEPOOL), RULES),
        Decision.RESERVATION_FLAVOR,
    ),
    "the flavor of a reservation passes in anybody's reservation": (
        (alice(reservation_flavor=True), on(FOREIGN), RULES),
        Decision.RESERVATION_FLAVOR,
    ),
    "the flavor of a reservation passes outside the pools": (
        (alice(reservation_flavor=True), on(), RULES),
        Decision.RESERVATION_FLAVOR,
    ),
    "the flavor of a reservation outranks its being preemptible": (
        (alice(reservation_flavor=True, preemptible=True), on(), PREEMPTIBLES),
        Decision.RESERVATION_FLAVOR,
    ),
    # Row 5
    "a preemptible server passes in the freepool": (
        (alice(preemptible=True), on(FREEPOOL), PREEMPTIBLES),
        Decision.PREEMPTIBLE_POOL,
    ),
    "a preemptible server passes in the aggregate that was named for them": (
        (alice(preemptible=True), on(SPOT), OWN_AGGREGATE),
        Decision.PREEMPTIBLE_POOL,
    ),
    # Row 6
    "a preemptible server is refused in a reservation": (
        (alice(preemptible=True), on(OWN), PREEMPTIBLES),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    "a preemptible server is refused on a host that changes hands": (
        (alice(preemptible=True), on(OWN, FREEPOOL), PREEMPTIBLES),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    "a preemptible server is refused where the aggregate for them has the zone of a reservation": (
        (alice(preemptible=True), on(Pool(name="freepool", reserved=True)), PREEMPTIBLES),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    "a preemptible server is refused in the freepool if another aggregate is for them": (
        (alice(preemptible=True), on(FREEPOOL), OWN_AGGREGATE),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    "a preemptible server is refused on a host that is in both": (
        (alice(preemptible=True), on(FREEPOOL, SPOT), OWN_AGGREGATE),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    "a preemptible server is refused on a host that a reservation is taking over": (
        (alice(preemptible=True), Host("compute-1", (FREEPOOL,), closed=True), PREEMPTIBLES),
        Decision.CHANGES_HANDS,
    ),
    "a preemptible server is refused where an instance reservation has room": (
        (alice(preemptible=True), Host("compute-1", (FREEPOOL,), promised=True), PREEMPTIBLES),
        Decision.PROMISED_ROOM,
    ),
    "a preemptible server is refused outside the pools": (
        (alice(preemptible=True), on(), PREEMPTIBLES),
        Decision.NOT_PREEMPTIBLE_POOL,
    ),
    # Row 7
    "an ordinary server is refused in the freepool": ((alice(), on(FREEPOOL), RULES), Decision.RESERVABLE_HOST),
    "an ordinary server is refused in the aggregate of preemptible ones": (
        (alice(), on(SPOT), OWN_AGGREGATE),
        Decision.RESERVABLE_HOST,
    ),
    "a server without a hint is refused in its own project's reservation": (
        (alice(), on(OWN), RULES),
        Decision.RESERVABLE_HOST,
    ),
    "a preemptible flavor is an ordinary one where preemptible servers are not allowed": (
        (alice(preemptible=True), on(FREEPOOL), RULES),
        Decision.RESERVABLE_HOST,
    ),
    "an operator's word does not open the freepool to an ordinary server": (
        (alice(destination="compute-1"), on(FREEPOOL), RULES),
        Decision.RESERVABLE_HOST,
    ),
    # Row 8
    "an ordinary server passes outside the pools": ((alice(), on(), RULES), Decision.OPEN_HOST),
    "a preemptible flavor passes outside the pools where preemptible servers are not allowed": (
        (alice(preemptible=True), on(), RULES),
        Decision.OPEN_HOST,
    ),
    # An operator moves a server out of its reservation.
    "an operator may send a server with a hint to a host outside the pools": (
        (hinted("r1", destination="compute-1"), on(), RULES),
        Decision.NAMED_BY_OPERATOR,
    ),
    "an operator who names one host opens no other one": (
        (hinted("r1", destination="compute-2"), on(), RULES),
        Decision.NOT_IN_RESERVATION,
    ),
    "an operator's word does not open the freepool to a server with a hint": (
        (hinted("r1", destination="compute-1"), on(FREEPOOL), RULES),
        Decision.NOT_IN_RESERVATION,
    ),
    "an operator's word does not open somebody else's reservation": (
        (hinted("r1", destination="compute-1"), on(FOREIGN), RULES),
        Decision.FOREIGN_RESERVATION,
    ),
    "an operator may name a host of the reservation itself": (
        (hinted("r1", destination="compute-1"), on(OWN), RULES),
        Decision.OWN_RESERVATION,
    ),
}


@pytest.mark.parametrize(("case", "decision"), TABLE.values(), ids=TABLE)
def test_the_table_says_that(case, decision):
    assert decide(*case) is decision


REQUESTS = [
    Request(project_id=project, reservations=names, reservation_flavor=flavor, preemptible=spot, destination=target)
    for project, names, flavor, spot, target in product(
        (None, "alice", "bob"),
        (frozenset(), frozenset({"r1"}), frozenset({"r1", "r2"}), frozenset({"freepool"})),
        (False, True),
        (False, True),
        (None, "compute-1", "compute-2"),
    )
]
HOSTS = [on(*pools) for n in range(3) for pools in product((OWN, SHARED, FOREIGN, SECOND, FREEPOOL, SPOT), repeat=n)]
CASES = list(product(REQUESTS, HOSTS, (RULES, PREEMPTIBLES, OWN_AGGREGATE)))


def test_without_the_flavor_of_a_reservation_only_its_projects_get_a_reserved_host():
    for request, host, rules in CASES:
        reserved = any(pool.reserved for pool in host.pools)
        if (
            reserved
            and decide(request, host, rules).passes
            and (request.reservations or not request.reservation_flavor)
        ):
            named = [pool for pool in host.pools if pool.name in request.reservations]
            assert any(request.project_id in {pool.owner, *pool.guests} for pool in named), (request, host)


def test_a_hint_never_leads_to_a_host_outside_the_pools_but_by_an_operators_word():
    for request, host, rules in CASES:
        if request.reservations and not host.pools:
            assert decide(request, host, rules).passes == (request.destination == host.name)


def test_an_operators_word_changes_nothing_on_hosts_of_a_pool_and_for_servers_without_a_hint():
    for request, host, rules in CASES:
        if host.pools or not request.reservations:
            unnamed = Request(
                project_id=request.project_id,
                reservations=request.reservations,
                reservation_flavor=request.reservation_flavor,
                preemptible=request.preemptible,
            )
            assert decide(request, host, rules) is decide(unnamed, host, rules)


AGGREGATES = {
    "an aggregate with the zone of a reservation is a pool": (
        ("r1", {"availability_zone": "blazar_r1", "blazar:owner": "alice"}),
        Pool(name="r1", reserved=True, owner="alice", guests=frozenset({"availability_zone", "blazar:owner"})),
    ),
    "the old prefix of zones still counts": (
        ("r1", {"availability_zone": "blazar:r1"}),
        Pool(name="r1", reserved=True, guests=frozenset({"availability_zone"})),
    ),
    "the freepool is a pool": (("freepool", {}), FREEPOOL),
    "a freepool with a zone of the operator is still no reservation": (
        ("freepool", {"availability_zone": "az-1"}),
        Pool(name="freepool", guests=frozenset({"availability_zone"})),
    ),
    "a freepool with the zone of a reservation is that reservation": (
        ("freepool", {"availability_zone": "blazar_x"}),
        Pool(name="freepool", reserved=True, guests=frozenset({"availability_zone"})),
    ),
    "a project is let in by its id as a key, whatever the value": (
        ("freepool", {"alice": "blazar:tenant", "bob": "blazar:project", "carol": "0"}),
        Pool(name="freepool", guests=frozenset({"alice", "bob", "carol"})),
    ),
    "an empty value lets nobody in": (("freepool", {"alice": ""}), FREEPOOL),
    "the aggregate of an instance reservation is no pool": (("r1", {"reservation": "r1", "blazar:owner": "bob"}), None),
    "an aggregate with an owner is a reservation, whatever its zone": (
        ("r1", {"availability_zone": "other_r1", "blazar:owner": "alice"}),
        Pool(name="r1", reserved=True, owner="alice", guests=frozenset({"availability_zone", "blazar:owner"})),
    ),
    "an aggregate with an owner is a reservation also without a zone": (
        ("r1", {"blazar:owner": "alice"}),
        Pool(name="r1", reserved=True, owner="alice", guests=frozenset({"blazar:owner"})),
    ),
    "an operator's zone is no pool": (("zone", {"availability_zone": "az-1"}), None),
    "a zone that only mentions the prefix is no pool": (("zone", {"availability_zone": "my_blazar_zone"}), None),
    "an aggregate that is named as a zone of a reservation is no pool": (("blazar_r1", {}), None),
}


@pytest.mark.parametrize(("aggregate", "pool"), AGGREGATES.values(), ids=AGGREGATES)
def test_of_a_hosts_aggregates(aggregate, pool):
    assert host_in("compute-1", [aggregate], RULES).pools == ((pool,) if pool else ())


def test_of_a_hosts_aggregates_tell_who_has_room_on_it_and_who_takes_it_over():
    slots, freepool = ("r1", {"reservation": "r1"}), ("freepool", {"blazar:closed:compute-1": "r2"})
    assert host_in("compute-1", [slots], RULES) == Host("compute-1", promised=True)
    assert host_in("compute-1", [freepool], RULES).closed
    assert not host_in("compute-2", [freepool], RULES).closed


def test_an_operator_chooses_the_names():
    rules = Rules(freepool="free", preemptible_pool="spot", owner_key="owner", zone_prefix="res-")
    aggregates = [("free", {}), ("spot", {}), ("x", {"availability_zone": "res-x", "owner": "alice"}), ("freepool", {})]
    host = host_in("compute-1", [*aggregates, ("y", {"availability_zone": "blazar_y"})], rules)
    assert [(pool.name, pool.reserved, pool.owner) for pool in host.pools] == [
        ("x", True, "alice"),
        ("free", False, None),
        ("spot", False, None),
    ]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (
            {"availability_zone": "other_r1", "blazar:owner": "alice"},
            "its zone 'other_r1' does not start with 'blazar_'",
        ),
        ({"blazar:owner": "alice"}, "its zone '' does not start with 'blazar_'"),
        ({"availability_zone": "blazar_r1", "owner": "alice"}, "its metadata has no 'blazar:owner'"),
    ],
)
def test_zone_and_owner_that_do_not_go_together_are_told(metadata, words):
    (said,) = host_in("compute-1", [("r1", metadata), ("freepool", {})], RULES).doubts
    assert said.startswith("aggregate r1 ")
    assert words in said


@pytest.mark.parametrize(
    "metadata",
    [
        {"availability_zone": "blazar_r1", "blazar:owner": "alice"},
        {"availability_zone": "blazar:r1", "blazar:owner": "alice"},
        {"reservation": "r1", "blazar:owner": "alice"},
        {"availability_zone": "az-1"},
        {},
    ],
)
def test_what_goes_together_raises_no_doubt(metadata):
    assert host_in("compute-1", [("r1", metadata)], RULES).doubts == ()


def test_pools_of_reservations_come_before_the_freepool_and_keep_their_order():
    zones = [(name, {"availability_zone": f"blazar_{name}"}) for name in ("r2", "r1")]
    host = host_in("compute-1", [("freepool", {}), *zones], RULES)
    assert [pool.name for pool in host.pools] == ["r2", "r1", "freepool"]


@pytest.mark.parametrize(
    ("hint", "names"),
    [
        (None, set()),
        ("", set()),
        ([], set()),
        (["", None], set()),
        ("r1", {"r1"}),
        (["r1"], {"r1"}),
        (["r1", "r2", "r1"], {"r1", "r2"}),
        ([1], {"1"}),
    ],
)
def test_a_hint_holds_one_name_or_several_or_none(hint, names):
    assert names_in(hint) == names


def test_every_decision_gives_a_reason_of_its_own():
    assert len({decision.reason for decision in Decision}) == len(Decision)


def test_a_lent_host_admits_preemptible_servers_and_its_own():
    reservation = ("r", {"availability_zone": "blazar_r", "blazar:owner": "physics", "blazar:lent:node-1": "true"})
    allowing = Rules(allow_preemptibles=True)
    lent, beside = (host_in(name, [reservation], allowing) for name in ("node-1", "node-2"))
    spot = Request(project_id="art", preemptible=True)
    assert decide(spot, lent, allowing) is Decision.LENT_HOST
    assert decide(spot, beside, allowing) is Decision.NOT_PREEMPTIBLE_POOL
    assert decide(spot, lent, Rules()) is Decision.RESERVABLE_HOST
    assert decide(Request(project_id="art"), lent, allowing) is Decision.RESERVABLE_HOST
    own = Request(project_id="physics", reservations=frozenset({"r"}))
    assert decide(own, lent, allowing) is Decision.OWN_RESERVATION
    closing = host_in("node-1", [reservation, ("freepool", {"blazar:closed:node-1": "r2"})], allowing)
    assert decide(spot, closing, allowing) is Decision.CHANGES_HANDS
