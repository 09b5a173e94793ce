# SPDX-License-Identifier: Apache-2.0
"""The client that everybody has, unmodified, and ours, against standalone mode, as their users type it."""

from __future__ import annotations

import copy
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from _pytest.mark.structures import ParameterSet

from tests import upstream
from tests.client.service import Command, Service, serving

pytestmark = pytest.mark.slow

START_IN = 25
"""Seconds in which a lease of these tests starts for certain, commands included."""
LATE = 10
"""Seconds that a lease may be late on a machine that does much else; ``tests/cloud/test_lateness.py`` measures it."""
PATIENCE = 30
"""Seconds within which what was asked for is done there."""


@pytest.fixture(scope="session")
def commands(tmp_path_factory) -> dict[str, Command]:
    """The ``blazar`` commands of python-blazarclient from PyPI, and ours in its place."""
    program = upstream.programs() / "blazar"
    ours = upstream.ours(tmp_path_factory.mktemp("ours"))
    return {"PyPI": Command(program, {}), "ours": Command(program, {"PYTHONPATH": str(ours)})}


@pytest.fixture(scope="session", params=["PyPI", "ours"])
def blazar_command(request, commands) -> Command:
    return commands[request.param]


@pytest.fixture
def service(blazar_command, tmp_path):
    """A service without hosts, of one test alone."""
    with serving(blazar_command, tmp_path / "var") as service:
        yield service


@pytest.fixture(scope="module")
def two_hosts(blazar_command, tmp_path_factory):
    with serving(blazar_command, tmp_path_factory.mktemp("shared") / "var") as service:
        service.run("host-create", "node-1", "--extra", "gpu=A100")
        service.run("host-create", "node-2")
        yield service


@pytest.fixture
def client(two_hosts):
    """Two hosts and no lease, of all tests of this file that neither stop the service nor delete its hosts."""
    yield two_hosts
    for lease in two_hosts.leases():
        two_hosts.run("lease-delete", lease["id"])


def minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def in_days(days: int) -> datetime:
    """Return the full minute that is now, so many days later."""
    return datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=days)


def test_hosts_are_listed_shown_and_given_capabilities(client):
    hosts = client.json("host-list")
    assert [(host["id"], host["hypervisor_hostname"]) for host in hosts] == [("1", "node-1"), ("2", "node-2")]
    assert "Updated" in client.run("host-update", "node-1", "--extra", "rack=r7")
    shown = client.json("host-show", "node-1")
    assert (shown["gpu"], shown["rack"], shown["vcpus"]) == ("A100", "r7", 16)
    client.run("host-unset", "node-1", "--extra", "rack")
    assert "rack" not in client.json("host-show", "1")


def test_properties_are_listed_and_made_private(client):
    assert client.json("host-property-list") == [{"property": "gpu"}]
    assert client.json("host-property-show", "gpu")["property_values"] == ["A100"]
    client.run("host-property-set", "gpu", "--private")
    assert client.json("host-property-list") == []
    assert client.json("host-property-list", "--all", "--detail")[0]["private"] is True
    client.run("host-property-set", "gpu", "--public")


def test_a_lease_in_the_future_is_moved_renamed_and_resized(client):
    begin = in_days(2)
    client.run(
        "lease-create", "later", "--physical-reservation", "min=1,max=2", "--start-date", minute(begin),
        "--end-date", minute(begin + timedelta(days=1)), "--before-end-date", minute(begin + timedelta(hours=23)),
    )  # fmt: skip
    for option, span, start, end_ in (
        ("--prolong-for", "2h", 0, 26),
        ("--reduce-by", "1h", 0, 25),
        ("--defer-by", "3h", 3, 25),
        ("--advance-by", "1h", 2, 25),
    ):
        client.run("lease-update", "later", option, span)
        lease = client.json("lease-show", "later")
        assert lease["start_date"] == f"{begin + timedelta(hours=start):%Y-%m-%dT%H:%M:%S}.000000"
        assert lease["end_date"] == f"{begin + timedelta(hours=end_):%Y-%m-%dT%H:%M:%S}.000000"
    client.run("lease-update", "later", "--name", "much-later")
    reservation = client.lease("much-later")["reservations"][0]["id"]
    client.run("lease-update", "much-later", "--reservation", f"id={reservation},min=2,max=2")
    assert client.lease("much-later")["reservations"][0]["min"] == 2


def test_a_lease_from_now_on_starts_at_once_and_ends_at_its_end(client):
    asked = time.time()
    # The next full minute that leaves it time to start.
    end = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    if end.timestamp() - asked < START_IN:
        end += timedelta(minutes=1)
    room = 'min=1,max=1,hypervisor_properties=,resource_properties=["==","$gpu","A100"]'
    created = client.json(
        "lease-create", "now", "--physical-reservation", room, "--start-date", "now", "--end-date", minute(end)
    )
    taken = client.wait("now", "ACTIVE", asked, PATIENCE)
    sent = datetime.fromisoformat(created["created_at"]).replace(tzinfo=UTC)
    started = client.lease("now")["reservations"][0]["updated_at"]
    assert datetime.fromisoformat(started).replace(tzinfo=UTC) - sent <= timedelta(seconds=LATE)
    print(f"the command took {taken:.1f} s until its lease was ACTIVE")
    assert client.freepool() == ["node-2"]

    late = client.wait("now", "TERMINATED", end.timestamp(), PATIENCE)
    print(f"TERMINATED {late:.2f} s after the end")
    ended = datetime.fromisoformat(client.lease("now")["updated_at"]).replace(tzinfo=UTC)
    assert timedelta(0) <= ended - end <= timedelta(seconds=LATE)
    assert sorted(client.freepool()) == ["node-1", "node-2"]


def test_leases_and_allocations_are_listed(client):
    for name, days, hosts in (("now", 0, 1), ("much-later", 2, 2)):
        dates = ("--start-date", minute(in_days(days)) if days else "now", "--end-date", minute(in_days(days + 1)))
        client.run("lease-create", name, "--physical-reservation", f"min={hosts},max={hosts}", *dates)
    assert {lease["name"] for lease in client.json("lease-list")} == {"now", "much-later"}
    assert {a["resource_id"] for a in client.json("allocation-list", "host")} == {"1", "2"}
    assert len(client.json("allocation-show", "host", "node-1")["reservations"]) >= 1


def test_addresses_are_registered_reserved_and_deleted(client):
    network = "5e1f7c1e-0b5a-4c7e-9d57-2f1d6c0a9e01"
    for number in (10, 11):
        client.run("floatingip-create", network, f"203.0.113.{number}")
    listed = client.json("floatingip-list")
    assert [address["floating_ip_address"] for address in sorted(listed, key=lambda a: a["floating_ip_address"])] == [
        "203.0.113.10",
        "203.0.113.11",
    ]
    assert client.json("floatingip-show", listed[0]["id"])["floating_network_id"] == network
    wanted = f'resource_type=virtual:floatingip,network_id={network},amount=1,required_floatingips=["203.0.113.11"]'
    client.run("lease-create", "web", "--reservation", wanted, "--start-date", "now", "--end-date", minute(in_days(2)))
    client.wait("web", "ACTIVE", time.time(), PATIENCE)
    address = client.lease("web")["reservations"][0]
    assert (address["amount"], address["required_floatingips"]) == (1, ["203.0.113.11"])
    client.run("lease-update", "web", "--reservation", f"id={address['id']},amount=2,required_floatingips=[]")
    assert client.lease("web")["reservations"][0]["amount"] == 2
    assert "is allocated to lease" in client.try_("floatingip-delete", listed[0]["id"]).stderr
    client.run("lease-delete", "web")
    for address in listed:
        limit = time.monotonic() + PATIENCE
        while client.try_("floatingip-delete", address["id"]).returncode:
            assert time.monotonic() < limit
    assert client.json("floatingip-list") == []


def test_a_lease_that_cannot_be_had_is_refused_with_the_reason(client):
    end = minute(in_days(2))
    refused = client.try_("lease-create", "big", "--physical-reservation", "min=9,max=9", "--end-date", end)
    assert refused.returncode != 0
    assert "Not enough hosts available" in refused.stdout + refused.stderr


def test_leases_and_hosts_are_deleted_by_name_and_by_id(service):
    for host in ("node-1", "node-2"):
        service.run("host-create", host)
    for name, start in (("now", "now"), ("later", minute(in_days(1)))):
        dates = ("--start-date", start, "--end-date", minute(in_days(2)))
        service.run("lease-create", name, "--physical-reservation", "min=1,max=1", *dates)
    service.wait("now", "ACTIVE", time.time(), PATIENCE)
    service.run("lease-delete", "later")
    service.run("lease-delete", "now")
    assert service.json("lease-list") == []
    service.run("host-delete", "node-1")
    service.run("host-delete", "2")
    assert service.json("host-list") == []


def test_the_upstream_client_reserves_servers_of_a_flavor(service):
    service.run("host-create", "node-3")
    end = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=2)
    for flavor, fits in (("3", "4"), ("gpu", "4")):
        room = f"resource_type=flavor:instance,flavor_id={flavor},amount="
        made = service.json("lease-create", f"of-{flavor}", "--reservation", room + fits, "--end-date", minute(end))
        (reservation,) = service.lease(made["name"])["reservations"]
        assert json.loads(reservation["resource_properties"])["id"] == flavor
    refused = service.try_("lease-create", "more", "--reservation", room + "1", "--end-date", minute(end))
    assert "Not enough hosts available" in refused.stdout + refused.stderr
    service.run(
        "lease-update", "of-3", "--reservation", f"id={service.lease('of-3')['reservations'][0]['id']},amount=6"
    )
    assert service.lease("of-3")["reservations"][0]["amount"] == 6


def test_the_service_stops_on_ctrl_c_and_goes_on_where_it_was(service):
    service.run("host-create", "node-1")
    end = datetime.now(UTC) + timedelta(hours=3)
    service.run("lease-create", "kept", "--physical-reservation", "min=1,max=1", "--end-date", minute(end))
    service.wait("kept", "ACTIVE", time.time(), PATIENCE)
    assert service.stop() == 0
    service.start()
    assert service.lease("kept")["status"] == "ACTIVE"
    service.stop(signal.SIGKILL)
    service.start()
    service.run("lease-delete", "kept")
    assert service.freepool() == ["node-1"]


NETWORK = "5e1f7c1e-0b5a-4c7e-9d57-2f1d6c0a9e01"

READ = (
    ("host-list",),
    ("host-list", "--sort-by", "vcpus", "-c", "id", "-c", "gpu"),
    ("host-show", "node-1", "-c", "id", "-c", "gpu", "-c", "updated_at", "-c", "vcpus", "-c", "disabled"),
    ("host-property-list",),
    ("host-property-list", "--detail"),
    ("host-property-list", "--detail", "--all"),
    ("host-property-show", "gpu"),
    ("lease-list",),
    ("lease-list", "--sort-by", "end_date", "--sort-column", "name"),
    ("lease-list", "-c", "name", "-c", "status", "-c", "reservations", "-c", "trust_id"),
    ("lease-show", "later"),
    ("lease-show", "addresses"),
    ("floatingip-list",),
    ("allocation-list", "host"),
    ("allocation-show", "host", "node-1"),
)
"""Commands that change nothing."""

CHANGE = (
    ("host-create", "node-3", "--extra", "gpu=H100", "-c", "hypervisor_hostname", "-c", "gpu", "-c", "updated_at"),
    ("floatingip-create", NETWORK, "203.0.113.{number}"),
    ("lease-create", "made", "--physical-reservation", "min=1,max=1", "-c", "name", "-c", "degraded", "-c", "user_id"),
    ("lease-update", "made", "--prolong-for", "2h", "--name", "kept"),
    ("lease-delete", "kept"),
    ("host-update", "node-3", "--extra", "gpu=A100", "--extra", "rack=r9"),
    ("host-unset", "node-3", "--extra", "rack"),
    ("host-property-set", "gpu", "--private"),
    ("host-property-set", "gpu", "--public"),
    ("host-delete", "node-3"),
)
"""Commands that leave what was there, each run with one client after all have been run with the other."""

FAIL = (
    ("lease-show", "3fa85f64-5717-4562-b3fc-2c963f66afa6"),
    ("host-show", "99"),
    ("host-delete", "1"),
)
VOLATILE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9-]{10}[T ][0-9:]{5}(:[0-9.]+)?|203\.0\.113\.\d+")
"""Ids, times, and addresses."""


@pytest.fixture(scope="module")
def both(commands, tmp_path_factory):
    """PyPI's client and ours at one service with hosts, addresses and leases."""
    with serving(commands["PyPI"], tmp_path_factory.mktemp("both") / "var") as theirs:
        theirs.run("host-create", "node-1", "--extra", "gpu=A100")
        theirs.run("host-create", "node-2", "--extra", "gpu=H100")
        for number in (10, 11):
            theirs.run("floatingip-create", NETWORK, f"203.0.113.{number}")
        dates = ("--start-date", minute(in_days(3)), "--end-date", minute(in_days(4)))
        theirs.run("lease-create", "later", "--physical-reservation", "min=1,max=1", *dates)
        address = f"resource_type=virtual:floatingip,network_id={NETWORK}"
        theirs.run("lease-create", "addresses", "--reservation", address, *dates)
        ours = copy.copy(theirs)
        ours.command = commands["ours"]
        yield theirs, ours


def flattened(service: Service) -> Service:
    """Return the service with a client of ours that prints JSON of one resource as PyPI's does."""
    other = copy.copy(service)
    other.command = replace(service.command, variables={**service.command.variables, "BLAZAR_FLAT_JSON": "1"})
    return other


COLUMNS = ("-c", "id", "-c", "name", "-c", "start_date", "-c", "end_date")
"""Those of PyPI's list of leases; ours shows people others in a table, and programs the same."""


FORMS = ("json", "value", "yaml", "table")


def in_turn() -> Iterator[ParameterSet]:
    """Return each command in each form; in one of them, another for the next, it is tried with each change."""
    for number, words in enumerate(READ):
        for place, form in enumerate(FORMS):
            by_night = place != number % len(FORMS)
            yield pytest.param(words, form, id=f"{' '.join(words)}-{form}", marks=[pytest.mark.nightly] * by_night)


@pytest.mark.parametrize(("words", "form"), [*in_turn()])
def test_what_both_clients_print_is_the_same(both, words, form):
    theirs, ours = both
    if words[0] == "lease-list" and form == "table" and "-c" not in words:
        words = (*words, *COLUMNS)
    assert flattened(ours).run(*words, "-f", form) == theirs.run(*words, "-f", form)


def test_what_both_clients_do_is_told_the_same(both):
    def told(service: Service, number: int) -> list[str]:
        filled = ([word.replace("{number}", str(number)) for word in words] for words in CHANGE)
        return [VOLATILE.sub("…", service.run(*words)) for words in filled]

    theirs, ours = both
    assert told(ours, 13) == told(theirs, 12)


@pytest.mark.parametrize("words", FAIL, ids=" ".join)
def test_what_the_service_refuses_is_told_the_same(both, words):
    said = [VOLATILE.sub("…", client.try_(*words).stderr).splitlines()[-1] for client in both]
    assert said[0] == said[1]


def test_a_text_of_the_service_is_printed_as_it_is(both):
    theirs, ours = both
    words = ("host-show", "node-1", "-f", "json", "-c", "cpu_info")
    rewritten, text = (json.loads(client.run(*words))["cpu_info"] for client in (theirs, ours))
    assert text == json.dumps(json.loads(text))
    assert rewritten == json.dumps(json.loads(text), indent=4)


def test_without_the_variable_json_of_one_resource_has_its_structures(both):
    theirs, ours = both
    flat, real = (client.json("lease-show", "later") for client in (theirs, ours))
    assert flat.keys() == real.keys()
    assert json.loads(flat["reservations"]) == real["reservations"][0]
    assert (flat["trust_id"] or None) == real["trust_id"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_it_refuses_to_listen_beyond_loopback(tmp_path, host):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--host", host, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "loopback only" in done.stderr


def test_a_port_that_is_taken_is_told_in_one_sentence(service, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--port", str(service.port), "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [done.stderr.strip()]
    assert "choose another with BLAZAR_PORT" in done.stderr


def test_a_folder_that_is_in_use_is_told_in_one_sentence(service):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--port", "0", "--data", str(service.data)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "choose another folder with BLAZAR_DATA" in done.stderr
