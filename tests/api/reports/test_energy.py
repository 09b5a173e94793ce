# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases/ID/energy``: what the whole hosts of a lease drew and emitted, and who sees it."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from blazar.clouds.curve_file import CurveFile
from blazar.model.energy.book import EnergyReading, HostHour
from blazar.model.energy.carbon import HourlyCurve
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import allocations
from tests.api.conftest import app_of, client_of, token
from tests.manager.billing.ledger import rows
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
OPERATOR, CURIE, OTHER = token("root", "admin", "admin"), token("curie", PROJECT), token("ivan", "biology")


class Curve(CurveFile):
    """400 g at noon, 100 g an hour later, and nothing known after that."""

    def read_curve(self):
        return HourlyCurve({int((NOON + n * HOUR).timestamp()): Fraction(grams) for n, grams in enumerate((400, 100))})


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, lease, *, who=CURIE, version="1.1"):
    headers = {"OpenStack-API-Version": f"reservation {version}", **who}
    return http.get(f"/v1/leases/{lease.id}/energy", headers=headers)


def told(http, lease, **more):
    answer = ask(http, lease, **more)
    assert answer.status_code == 200, answer.text
    return answer.json["energy"]


def set_properties(world: World, number: int, **values: str) -> None:
    host = world.store.resources.catalog(HOST).resources[number]
    world.manager.resources.change(HOST, host.external_id, ResourceChange(values))


def know_carbon(world: World) -> None:
    world.manager.reports._energies._carbon = Curve(pue=Fraction(3, 2))


def test_a_lease_has_the_energy_of_its_hosts_until_now(world, http):
    set_properties(world, 0, power_idle_w="180", power_max_w="420")
    lease = world.lease(a_host(2), hours=4)
    world.run_to(NOON + 2 * HOUR)
    # 300 W for two hours; nothing is known of the second host.
    assert told(http, lease) == {
        "computed_through": "2030-04-01T14:00:00Z",
        "resource_seconds": 4 * 3600,
        "energy_wh": 600,
        "source": "rated",
        "unknown_seconds": 2 * 3600,
        "carbon": None,
    }


def test_a_lease_that_is_over_keeps_its_energy(world, http):
    set_properties(world, 0, power_idle_w="100", power_max_w="100")
    lease = world.lease(a_host(), hours=2)
    world.run_to(NOON + 10 * HOUR)
    (first, second) = (told(http, lease), told(http, lease, who=OPERATOR))
    assert (first["energy_wh"], first["resource_seconds"]) == (200, 2 * 3600)
    assert first == second


def test_servers_have_the_share_of_a_host_that_their_vcpus_are(world, http):
    for number in range(3):
        set_properties(world, number, power_idle_w="300", power_max_w="300")
    lease = world.lease(instances(3, vcpus=2), hours=2)
    world.run_to(NOON + 2 * HOUR)
    sizes = {host.id: host.capacity.get("VCPU") for host in world.store.resources.catalog(HOST).resources}
    taken = [(row["count"] * 2, sizes[row["resource_id"]]) for row in rows(world, allocations)]
    assert told(http, lease)["energy_wh"] == round(sum(Fraction(600 * vcpus, size) for vcpus, size in taken))


def test_what_was_measured_counts_in_place_of_the_rating_and_a_gap_is_rated(world, http):
    set_properties(world, 0, power_idle_w="180", power_max_w="420")
    lease = world.lease(a_host(), hours=4)
    (host, *_) = world.store.resources.catalog(HOST).resources
    measured = HostHour(host.id, int(NOON.timestamp()), 123_000, 12)
    world.store.energy.claim_turn("mine", now=NOON, until=NOON + HOUR)
    world.store.energy.record("mine", EnergyReading([measured]))
    world.run_to(NOON + HOUR)
    assert (told(http, lease)["energy_wh"], told(http, lease)["source"]) == (123, "measured")
    world.run_to(NOON + 2 * HOUR)
    assert (told(http, lease)["energy_wh"], told(http, lease)["source"]) == (423, "mixed")


def test_a_lease_that_has_nothing_has_no_energy(world, http):
    set_properties(world, 0, power_idle_w="100", power_max_w="100")
    lease = world.lease(a_host(), start=HOUR, hours=2)
    world.run()
    found = told(http, lease)
    assert (found["energy_wh"], found["source"], found["resource_seconds"]) == (None, None, 0)


def test_carbon_is_by_the_hour_with_the_share_of_the_hosts(world, http):
    know_carbon(world)
    for number in range(3):
        set_properties(world, number, power_idle_w="1000", power_max_w="1000", embodied_kg="8766", lifespan_years="1")
    lease = world.lease(a_host(), hours=4)
    world.run_to(NOON + 2 * HOUR)
    # 1 kWh at 400 g and at 100 g, times 1.5; and a kilogram for each hour of the host.
    assert told(http, lease)["carbon"] == {
        "gco2": 2750,
        "embodied_gco2": 2000,
        "sci_mg": 1_375_000,
        "estimated": False,
        "complete": True,
        "embodied_complete": True,
    }
    world.run_to(NOON + 3 * HOUR)
    carbon = told(http, lease)["carbon"]
    assert (carbon["gco2"], carbon["complete"]) == (3750, False)


def test_energy_of_others_is_for_operators(world, http):
    lease = world.lease(a_host(), hours=4)
    assert ask(http, lease, who=OTHER).status_code == 404
    assert ask(http, lease, who=OPERATOR).status_code == 200
    assert ask(http, lease, version="1.0").status_code == 404


def test_the_number_of_statements_is_constant(world, http):
    def count(lease) -> int:
        with counted(world.engine) as statements:
            told(http, lease)
        return statements.count

    few, many = world.lease(a_host(), hours=1), world.lease(a_host(2), hours=1)
    world.run_to(NOON + HOUR / 2)
    assert count(few) == count(many) == 4
