# SPDX-License-Identifier: Apache-2.0
"""Leases are as the options in ``blazar.conf`` say: from the file to the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from blazar.model.base.clock import zulu
from blazar.model.base.paging import Page
from blazar.model.leases.states import LeaseStatus
from tests.configured import Configured
from tests.manager.billing.ledger import publish
from tests.statements import counted

SERIES = {
    "name": "course",
    "start": "2030-04-02T08:00:00",
    "time_zone": "UTC",
    "duration": "1h",
    "rule": "FREQ=DAILY;COUNT=3",
    "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}],
}


@pytest.fixture
def start(tmp_path):
    return lambda *lines, **more: Configured(tmp_path, *lines, **more)


def _error(answer, status: int = 409) -> dict:
    assert answer.status_code == status, answer.text
    return answer.json["errors"][0]


def test_a_resource_is_kept_free_between_two_leases_for_cleaning_time(start):
    service = start("[DEFAULT]", "cleaning_time = 30", hosts=1)
    assert service.book(end="2030-04-01T14:00:00Z").status_code == 201
    assert service.book(start="2030-04-01T14:29:00Z", end="2030-04-01T15:00:00Z").status_code == 409
    assert service.book(start="2030-04-01T14:30:00Z", end="2030-04-01T15:00:00Z").status_code == 201


@pytest.mark.parametrize("explained", [True, False])
def test_refusals_are_explained_if_the_file_says_so(start, explained):
    service = start("[api]", f"explain_refusals = {explained}")
    assert ("reasons" in _error(service.book(hosts=3)).get("data", {})) is explained


@pytest.mark.parametrize("final", [True, False])
def test_refusals_are_final_if_the_file_says_so(start, final):
    service = start("[api]", f"final_refusals = {final}")
    assert service.book(hosts=3, version="1.0").status_code == (400 if final else 409)


@pytest.mark.parametrize("minutes", [0, 20])
def test_a_lease_may_be_unconfirmed_for_as_long_as_the_file_says(start, minutes):
    service = start("[manager]", f"confirm_within = {minutes}")
    later = {"start": "2030-04-02T08:00:00Z", "end": "2030-04-02T09:00:00Z"}
    assert service.book(**later, confirm_within="PT20M").status_code == (201 if minutes else 400)
    refused = _error(service.book(**later, confirm_within="PT21M"), 400)
    assert ("give PT20M or less" if minutes else "firm at once here") in refused["detail"]


def test_the_kind_of_a_lease_is_the_default_of_the_file(start):
    """An immediate lease begins now: with another start it is refused, and a scheduled one is not."""
    service = start("[api]", "default_kind = immediate")
    later = {"start": "2030-04-02T08:00:00Z", "end": "2030-04-02T09:00:00Z"}
    assert service.book(**later).status_code == 400
    assert service.book(**later, kind="scheduled").status_code == 201


@pytest.mark.parametrize("repacked", [True, False])
def test_who_sees_names_of_hosts_keeps_them_unless_the_file_says_otherwise(start, tmp_path, repacked):
    policy = tmp_path / "policy.yaml"
    policy.write_text('"blazar:calendar:get_names": "rule:project_reader_or_admin"\n')
    service = start("[api]", f"repack_named = {repacked}", "[oslo_policy]", f"policy_file = {policy}")

    def keeps(**more: object) -> bool:
        return service.book(start="2030-04-02T08:00:00Z", end="2030-04-02T09:00:00Z", **more).json["lease"][
            "keep_hosts"
        ]

    assert keeps() is not repacked
    # Operators see all names, and a request that says it is right.
    assert not keeps(who="root:operations:admin", keep_hosts=False)
    series = service.ask("POST", "/v1/series", {**SERIES, "start": "2030-04-03T08:00:00"}).json["series"]
    assert series["keep_hosts"] is not repacked


def test_only_the_kinds_of_the_file_are_booked(start):
    service = start("[api]", "allowed_kinds = scheduled")
    assert service.book(kind="immediate").status_code in (400, 403)
    assert service.book(kind="scheduled").status_code == 201


def test_as_many_wait_as_the_file_says(start):
    service = start("[api]", "waiting_per_project = 1", hosts=1)
    assert service.book().status_code == 201
    assert service.book(end="+2h", wait={"until": "+1d"}).json["lease"]["status"] == "WAITING"
    assert service.book(end="+2h", wait={"until": "+1d"}).status_code in (403, 409)


@pytest.mark.slow
def test_there_are_as_many_series_as_the_file_says(start):
    service = start("[api]", "series_per_project = 1")
    assert service.ask("POST", "/v1/series", SERIES).status_code == 201
    assert service.ask("POST", "/v1/series", SERIES).status_code in (403, 409)


def test_a_series_has_as_many_occurrences_as_the_file_says(start):
    service = start("[api]", "series_occurrences = 2")
    assert service.ask("POST", "/v1/series", SERIES).status_code == 400
    assert service.ask("POST", "/v1/series", {**SERIES, "rule": "FREQ=DAILY;COUNT=2"}).status_code == 201


@pytest.mark.slow
def test_a_series_without_an_end_is_booked_as_far_as_the_file_says(start):
    service = start("[api]", "series_horizon = 4")
    made = service.ask("POST", "/v1/series", {**SERIES, "rule": "FREQ=DAILY", "fit": "as_many"})
    assert made.status_code == 201, made.text
    assert len(made.json["series"]["occurrences"]) == 4


def test_an_offer_expires_when_the_file_says(start):
    service = start("[api]", "transfer_expiry = 3")
    lease = service.book().json["lease"]
    made = service.ask("POST", f"/v1/leases/{lease['id']}/transfer", {"project_id": "biology"})
    assert made.json["transfer"]["expires_at"] == "2030-04-01T15:00:00Z", made.text


@pytest.mark.slow
def test_an_idempotency_key_is_forgotten_when_the_file_says(start):
    service = start("[api]", "idempotency_retention = 1", hosts=3)
    headers = {"X-Auth-Token": "alice:physics", "OpenStack-API-Version": "reservation 1.1", "Idempotency-Key": "k1"}
    body = {"name": "x", "start_date": "2030-04-02T08:00:00Z", "end_date": "2030-04-02T09:00:00Z"}
    body["reservations"] = [{"resource_type": "physical:host", "min": 1, "max": 1}]
    ids = []
    for minutes in (0, 30, 60):
        service.pass_time(minutes=minutes)
        service.manager.key_expiry.run_once()
        ids.append(service.http.post("/v1/leases", json=body, headers=headers).json["lease"]["id"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.slow
def test_a_history_has_as_many_last_entries_as_the_file_says(start):
    service = start("[api]", "history_entries = 10")
    lease = service.book(start="2030-04-02T08:00:00Z", end="2030-04-02T09:00:00Z").json["lease"]
    for number in range(130):
        changed = service.ask("PUT", f"/v1/leases/{lease['id']}", {"name": f"n{number}"}, version="1.0")
        assert changed.status_code == 200, changed.text
        service.manager.journal_numbering.run_once()
    entries = service.ask("GET", f"/v1/leases/{lease['id']}/history?limit=1000").json["history"]
    assert 100 + 10 + 1 <= len(entries) <= 100 + 10 + 1 + 10


@pytest.mark.parametrize(("days", "left"), [(5, 0), (30, 1), (0, 1)])
def test_what_was_done_to_other_things_is_kept_as_long_as_the_file_says(start, days, left):
    service = start("[history]", f"keep_days = {days}", hosts=1)
    lease = service.book(start="2030-04-02T08:00:00Z", end="2030-04-02T09:00:00Z").json["lease"]
    service.manager.journal_numbering.run_once()
    service.pass_time(days=10)
    service.manager.key_expiry.run_once()
    found = [entry.about for entry in service.store.journal.entries_after(0, None, 100).items]
    assert sum(about.object_type == "resource" for about in found) == left
    assert lease["id"] in [about.id for about in found]


@pytest.mark.parametrize(("minutes", "status"), [(0, 409), (5, 201)])
def test_a_quote_holds_for_as_long_as_the_file_says(start, minutes, status):
    service = start("[billing]", f"quote_holds = {minutes}", hosts=1)
    publish(service)
    later = {"start": "2030-04-02T08:00:00Z", "end": "2030-04-02T09:00:00Z"}
    quoted_at = zulu(service.clock.now())
    service.pass_time(minutes=4)
    publish(service, at=service.clock.now(), prices=[{"sku": "host", "measure": "host", "per_hour": "9.00"}])
    service.pass_time(minutes=1)
    assert service.book(**later, quoted_at=quoted_at).status_code == status


def test_who_is_to_be_paid_is_named_as_the_file_says(start):
    service = start("[billing]", "provider = Cloud of Bern", hosts=1)
    publish(service)
    service.book(start="2030-04-02T08:00:00Z", end="2030-04-02T09:00:00Z")
    service.pass_time(days=2)
    assert service.manager.closing.run_once() == 1
    assert service.ask("GET", "/v1/statements/2030-04").json["statement"]["provider"] == "Cloud of Bern"


@pytest.mark.slow
@pytest.mark.parametrize(("past", "entries"), [("ended", 4), ("deleted", 2)])
@pytest.mark.parametrize(("number", "kept"), [(-1, 3), (1, 1), (0, 0)])
def test_histories_of_past_leases_have_as_many_entries_as_the_file_says(start, number, kept, past, entries):
    service = start("[api]", f"past_history_entries = {number if number < 1 else entries + 1}")
    ids = []
    for day in (2, 3, 4):
        lease = service.book(start=f"2030-04-0{day}T08:00:00Z", end=f"2030-04-0{day}T09:00:00Z").json["lease"]
        if past == "deleted":
            assert service.ask("DELETE", f"/v1/leases/{lease['id']}").status_code == 204
        service.pass_time(days=1)
        ids.append(lease["id"])
    assert service.manager.key_expiry.run_once() == 3 - kept
    found = [len(service.store.history.page(id_, Page(100, "at")).items) for id_ in ids]
    assert found == [0] * (3 - kept) + [entries] * kept


@pytest.mark.slow
def test_a_list_of_1_0_has_as_many_ended_leases_as_the_file_says(start):
    service = start("[api]", "ended_leases = 100", "[enforcement]", "leases_per_project = -1", hosts=1)
    for number in range(101):
        begin = datetime(2030, 4, 2, tzinfo=UTC) + timedelta(minutes=number)
        begin, end = (each.strftime("%Y-%m-%dT%H:%M:00Z") for each in (begin, begin + timedelta(minutes=1)))
        assert service.book(start=begin, end=end).status_code == 201
    service.pass_time(days=2)
    assert len(service.ask("GET", "/v1/leases", version="1.0").json["leases"]) == 100


@pytest.mark.parametrize(("number", "follows"), [(0, False), (1, True)])
def test_as_many_uses_are_kept_as_the_file_says(start, number, follows):
    service = start("[database]", f"kept_uses = {number}")
    service.book()
    with counted(service.store.transactions.engine) as found:
        service.book()
    assert any("FROM calendar_changes" in text for text in found.texts) == follows


@pytest.mark.parametrize(("minutes", "time"), [(20, "13:40"), (0, None)])
def test_the_warning_comes_as_many_minutes_before_the_end_as_the_file_says(start, minutes, time):
    lease = start("[manager]", f"minutes_before_end_lease = {minutes}").book().json["lease"]
    assert (lease["before_end_date"] or "")[11:16] == (time or "")


@pytest.mark.slow
@pytest.mark.parametrize(("names", "status"), [("physical.host.plugin", 400), ("virtual.instance.plugin", 201)])
def test_only_the_types_of_the_file_are_there(start, names, status):
    service = start("[manager]", f"plugins = {names}")
    servers = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 1, "disk_gb": 1}
    assert service.book(reservations=[{**servers, "affinity": None}]).status_code == status


@pytest.mark.slow
def test_the_aggregates_in_nova_have_the_names_and_marks_of_the_file(start):
    names = ("aggregate_freepool_name = pool", "blazar_owner = belongs", "project_id_key = whose")
    service = start("[nova]", *names, "[physical:host]", "blazar_az_prefix = zone_", freepool="pool")
    assert service.book().status_code == 201
    service.pass_time(minutes=1)
    with service.simulated.inspect() as state:
        found = list(state.aggregates.values())
    assert [each.hosts for each in found if each.name == "pool"] == [["node-2"]]
    (made,) = [each for each in found if (each.zone or "").startswith("zone_")]
    assert made.metadata["belongs"] == "physics"
    # As its help says, project_id_key has no effect.
    assert "whose" not in made.metadata


@pytest.mark.slow
def test_a_project_has_as_many_leases_as_the_file_says(start):
    service = start("[enforcement]", "leases_per_project = 1", "exempt_projects = biology", hosts=4)
    assert service.book().status_code == 201
    assert service.book().status_code in (403, 409)
    assert [service.book(who="bob:biology").status_code for _ in range(2)] == [201, 201]


def test_a_project_leaves_as_many_leases_unconfirmed_as_the_file_says(start):
    service = start("[enforcement]", "lapsed_per_project = 0", "exempt_projects = biology", hosts=4)
    later = {"start": "2030-04-02T08:00:00Z", "end": "2030-04-02T09:00:00Z"}
    refused = _error(service.book(**later, confirm_within="PT10M"), 403)
    assert "the limit is 0 (lapsed_per_project); book without confirm_within" in refused["detail"]
    assert service.book(**later).status_code == 201
    assert service.book(**later, confirm_within="PT10M", who="bob:biology").status_code == 201


@pytest.mark.slow
def test_a_lease_and_a_project_have_as_many_reservations_as_the_file_says(start):
    service = start("[enforcement]", "reservations_per_lease = 2", "reservations_per_project = 3", hosts=4)
    room = {"resource_type": "physical:host", "min": 1, "max": 1}
    assert service.book(reservations=[room] * 3).status_code in (400, 403, 409)
    assert service.book(reservations=[room] * 2).status_code == 201
    assert service.book(reservations=[room] * 2).status_code in (403, 409)
    assert service.book(reservations=[room]).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("MaxConcurrentLeasesFilter", "max_concurrent_leases = 1"),
        ("MaxUnitsFilter", "max_units = 1"),
        ("ResourceHoursFilter", "max_resource_hours = host:2"),
    ],
)
def test_a_project_gets_as_much_as_the_file_says(start, name, line):
    service = start("[enforcement]", f"enabled_filters = {name}", line)
    assert service.book().status_code == 201
    refused = _error(service.book(), 403)
    assert refused["code"] == "reservation.limit_exceeded"
    assert refused["data"]["limit"] == line.partition(" = ")[0]


def test_leases_start_in_the_window_of_the_file(start):
    lines = ("enabled_filters = StartWindowFilter", "earliest_start = 3600", "latest_start = 7200")
    service = start("[enforcement]", *lines)
    times = [f"2030-04-01T{hour}:30:00Z" for hour in (12, 13, 14)]
    answers = [service.book(start=time, end="2030-04-01T18:00:00Z") for time in times]
    assert [answer.status_code for answer in answers] == [403, 201, 403]


@pytest.mark.slow
def test_a_lease_is_extended_within_the_window_of_the_file(start):
    lines = ("max_lease_duration = 7200", "reservation_extension_window = 1800")
    service = start("[enforcement]", "enabled_filters = MaxLeaseDurationFilter", *lines)
    lease = service.book().json["lease"]
    longer = {"end_date": "2030-04-01 15:30"}
    service.pass_time(minutes=80)
    assert service.ask("PUT", f"/v1/leases/{lease['id']}", longer, version="1.0").status_code == 400
    service.pass_time(minutes=15)
    assert service.ask("PUT", f"/v1/leases/{lease['id']}", longer, version="1.0").status_code == 200


@pytest.mark.slow
def test_a_lease_has_as_many_tries_as_the_file_says(start):
    service = start("[api]", "default_tries = 2", hosts=1)
    made = service.book(kind="retries", end="+2h", wait={"until": "+1d"})
    assert made.json["lease"]["wait"]["tries"] == 2


def test_a_lease_asks_for_as_many_tries_as_the_file_says(start):
    service = start("[api]", "most_tries = 2", hosts=1)
    kind = {"kind": "retries", "end": "+2h"}
    assert service.book(**kind, wait={"until": "+1d", "tries": 3}).status_code == 400
    assert service.book(**kind, wait={"until": "+1d", "tries": 2}).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize(("weights", "first"), [("", "chemistry"), ("biology:4", "biology")])
def test_whose_turn_it_is_goes_by_the_weights_of_the_file(start, weights, first):
    """The first project has used two hosts, and the second one."""
    service = start("[api]", "promises = 0", f"project_weights = {weights}", hosts=3)
    found = {}
    for project, hosts in (("biology", 2), ("chemistry", 1)):
        assert service.book(hosts=hosts, who=f"curie:{project}").status_code == 201
    for project in ("biology", "chemistry"):
        made = service.book(hosts=3, end="+2h", wait={"until": "+1d"}, who=f"curie:{project}")
        found[made.json["lease"]["id"]] = project
    service.pass_time(hours=2)
    while service.manager.waiting_list.run_once():
        service.manager.engine.run_due()
    active = [found[id_] for id_ in found if service.store.leases.one(id_).status is LeaseStatus.ACTIVE]
    assert active == [first]


@pytest.mark.slow
@pytest.mark.parametrize(("who", "status"), [("alice:physics", 403), ("bob:biology", 201)])
def test_a_lease_is_as_long_as_the_file_says_unless_its_project_is_exempt(start, who, status):
    lines = ("max_lease_duration = 7200", "max_lease_duration_exempt_project_ids = biology")
    service = start("[enforcement]", "enabled_filters = MaxLeaseDurationFilter", *lines)
    assert service.book(end="2030-04-01T14:00:00Z", who=who).status_code == 201
    assert service.book(end="2030-04-01T14:01:00Z", who=who).status_code == status
