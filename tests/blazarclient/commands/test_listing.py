# SPDX-License-Identifier: Apache-2.0
"""``lease list`` with filters, ``lease show --long`` and ``history``."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from keystoneauth1 import fixture

from tests.blazarclient.commands.conftest import ID, INFO, LEASE, NEW, SPOKEN, URL, Run, says, sent

MINE = {"info": {**INFO["info"], "user_id": "curie"}}
RESERVATION = {
    "id": "b7e4d0a2-1d7c-4b0e-9a53-6f2f5d0c8e21",
    "resource_type": "physical:host",
    "status": "active",
    "min": 2,
    "max": 2,
    "resource_properties": ["==", "$gpu", "A100"],
    "hypervisor_properties": [],
    "allocations": [
        {"resource": {"id": "h-4kq2mz", "type": "host", "name": None}, "count": 1, "used": None, "status": "in_use"}
    ],
    "use": {"scheduler_hints": {"reservation": "b7e4"}, "flavor_id": None, "server_group_id": None, "addresses": []},
}
FULL = {
    **LEASE,
    "degraded": True,
    "conditions": [
        {
            "type": "missing_resources",
            "reservation_id": RESERVATION["id"],
            "since": "2026-11-23T09:58:40Z",
            "count": 1,
            "reason": {"code": "resource_failed", "message": "1 of 2 hosts has failed"},
        }
    ],
    "reservations": [RESERVATION],
    "events": [
        {
            "event_type": "start_lease",
            "time": "2026-11-23T10:15:42Z",
            "status": "DONE",
            "finished_at": "2026-11-23T10:16:00Z",
            "reason": {"code": "previous_user_not_left", "message": "the servers of the one before were still there"},
        }
    ],
}


def query(service: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = sent(service, "GET")[-1].qs
    return found


@pytest.fixture
def leases(service: Any) -> Any:
    service.get(f"{URL}/leases", **says("leases", [FULL]))
    service.get(f"{URL}/leases/{ID}", **says("lease", FULL))
    service.get(f"{URL}/info", json=MINE, headers=NEW)
    return service


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("--status", "active", "--status", "error"), {"status": ["in:active,error"]}),
        (("--status", "active,error"), {"status": ["in:active,error"]}),
        (("--past",), {"state": ["past"]}),
        (("--state", "all"), {"state": ["all"]}),
        (("--mine",), {"user_id": ["curie"]}),
        (("--project", "physics", "--user", "marie"), {"project_id": ["physics"], "user_id": ["marie"]}),
        (("--text", "train"), {"text": ["train"]}),
        (("--resource-type", "physical:host"), {"resource_type": ["physical:host"]}),
        (("--from", "tomorrow", "--to", "+3d"), {"from": ["2026-11-23t23:00:00z"], "to": ["2026-11-26t10:15:42z"]}),
        (("--from", "-2d", "--to", "-1h"), {"from": ["2026-11-21t10:15:42z"], "to": ["2026-11-23t09:15:42z"]}),
        (("--from=-2d",), {"from": ["2026-11-21t10:15:42z"]}),
        (("--limit", "5"), {"limit": ["5"]}),
        (("--limit", "5000"), {"limit": ["1000"]}),
        (("--limit", "5", "--sort-by", "end_date"), {"sort_key": ["end_date"]}),
        (("--all-projects", "-c", "status"), {"fields": ["status"]}),
    ],
)
def test_the_service_chooses_among_the_leases(
    run: Run, leases: Any, words: tuple[str, ...], asked: dict[str, list[str]]
) -> None:
    code, _, err = run("lease", "list", *words)
    assert (code, err) == (0, "")
    assert asked.items() <= query(leases).items()


def test_without_a_filter_the_list_is_as_it_ever_was(run: Run, leases: Any) -> None:
    code, out, _ = run("lease", "list", "-f", "json")
    (request,) = sent(leases, "GET")
    assert code == 0
    assert list(json.loads(out)[0]) == ["id", "name", "start_date", "end_date"]
    assert "OpenStack-API-Version" not in request.headers


def test_more_of_each_is_told_if_asked(run: Run, leases: Any) -> None:
    _, out, _ = run("lease", "list", "--long", "-f", "json")
    (row,) = json.loads(out)
    assert row["resource_types"] == ["physical:host"]
    assert (row["status"], row["degraded"], row["start_date"]) == ("ACTIVE", True, "2026-11-23T10:15:42Z")


def test_times_are_those_of_the_users_zone_in_a_table_only(run: Run, leases: Any) -> None:
    _, table, _ = run("lease", "list", "--limit", "1", "-f", "value", "-c", "start_date")
    _, text, _ = run("lease", "list", "--limit", "1", "-f", "csv", "-c", "start_date")
    assert table == "2026-11-23 11:15:42+01:00\n"
    assert list(csv.reader(io.StringIO(text)))[1] == ["2026-11-23T10:15:42Z"]


def test_pages_are_read_one_by_one_and_no_further_than_asked(run: Run, leases: Any) -> None:
    def page(request: Any, context: Any) -> dict[str, Any]:
        number = int(request.qs.get("marker", ["0"])[0])
        link = {"rel": "next", "href": f"{URL}/leases?marker={number + 1}"}
        return {"leases": [{"id": f"{number}-{each}"} for each in range(1000)], "links": [link]}

    leases.get(f"{URL}/leases", json=page, headers=NEW)
    code, out, _ = run("lease", "list", "--limit", "2500", "-f", "value", "-c", "id")
    assert code == 0
    assert out.splitlines()[-1] == "2-499"
    assert len(sent(leases, "GET")) == 3


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--limit", "0"), 2, "no number from 1 on"),
        (("--limit", "1", "-c", "nix"), 1, "There is no column nix; choose from"),
        (("--limit", "1", "--sort-by", "nix"), 1, "Cannot sort by nix; choose from"),
        (("--from", "never"), 2, "--from: 'never' is no time"),
        (("--to", "ever"), 2, "--to: 'ever' is no time"),
        (("--past", "--state", "all"), 2, "not allowed with"),
    ],
)
def test_what_cannot_be_asked_is_told(run: Run, leases: Any, words: tuple[str, ...], code: int, sentence: str) -> None:
    left, out, err = run("lease", "list", *words)
    assert (left, out) == (code, "")
    assert sentence in err


def test_history_has_the_last_first_and_ends_at_twenty(run: Run, leases: Any) -> None:
    code, _, err = run("history")
    assert (code, err) == (0, "")
    asked = {"state": ["past"], "sort_key": ["updated_at"], "sort_dir": ["desc"], "limit": ["20"]}
    assert asked.items() <= query(leases).items()


def test_all_of_a_lease_is_told_also_which_hosts_it_has_and_how_to_use_them(run: Run, leases: Any) -> None:
    code, out, err = run("lease", "show", "training", "--long")
    assert (code, err) == (0, "")
    for words in (
        "since 2026-11-23 10:58:40+01:00: 1 of 2 hosts has failed",
        "host h-4kq2mz, in_use",
        "openstack server create --flavor <flavor> --hint reservation=b7e4 --image <image> <name>",
        "start_lease 2026-11-23 11:16+01:00 DONE: the servers of the one before were still there",
    ):
        assert words in out


def test_what_a_stack_is_made_of_is_told_line_by_line(run: Run, leases: Any) -> None:
    child = {**RESERVATION, "id": "c41d", "resource_type": "flavor:instance", "amount": 2}
    stack = {**RESERVATION, "resource_type": "virtual:stack", "allocations": [], "children": [child]}
    leases.get(f"{URL}/leases/{ID}", **says("lease", {**FULL, "reservations": [stack]}))
    code, out, err = run("lease", "show", "training", "--long", "-f", "value", "-c", "reservations")
    assert (code, err) == (0, "")
    first, *rest = [line for line in out.splitlines() if line.startswith("  flavor:instance c41d, ")]
    assert (first, rest) == (f"  flavor:instance c41d, {RESERVATION['status']}", [])
    assert "    host h-4kq2mz, in_use" in out.splitlines()
    assert "children=" not in out


def test_a_text_of_several_lines_or_for_the_terminal_stays_within_its_line(run: Run, leases: Any) -> None:
    given = {"resource_type": "virtual:stack", "template": "a: 1\nb: 2\n", "network_description": "\x1b[2J"}
    leases.get(f"{URL}/leases/{ID}", **says("lease", {**FULL, "reservations": [{**RESERVATION, **given}]}))
    code, out, err = run("lease", "show", "training", "--long")
    assert (code, err) == (0, "")
    assert "template=(2 lines)" in out
    assert 'network_description="\\u001b[2J"' in out
    assert "\x1b" not in out


def test_what_hooks_of_generic_resources_answered_is_told_and_none_of_it_controls_the_terminal(
    run: Run, leases: Any
) -> None:
    resources = [{"id": "9a31", "name": "microscope-1", "answer": {"url": "https://lab", "hint": "\x1b[2J\u202e"}}]
    of_type = {"resource_type": "generic", "class": "microscope", "resources": [*resources, {"id": "9", "name": "m"}]}
    leases.get(f"{URL}/leases/{ID}", **says("lease", {**FULL, "reservations": [{**RESERVATION, **of_type}]}))
    code, out, err = run("lease", "show", "training", "--long")
    assert (code, err) == (0, "")
    assert 'microscope-1: {"url": "https://lab", "hint": "\\u001b[2J\\u202e"}' in out
    assert "resources=" not in out


def test_a_program_is_told_all_as_the_service_tells_it(run: Run, leases: Any) -> None:
    _, out, _ = run("lease", "show", "training", "--long", "-f", "json")
    assert json.loads(out) == FULL


def test_a_lease_that_is_over_is_found_by_its_name(run: Run, leases: Any) -> None:
    leases.get(f"{URL}/leases", **says("leases", []))
    leases.get(f"{URL}/leases?state=past", **says("leases", [{"id": ID}]))
    code, out, _ = run("lease", "show", "training", "--long", "-f", "value", "-c", "name")
    assert (code, out) == (0, "training\n")


def test_a_lease_that_has_ended_keeps_its_name_and_one_that_was_deleted_does_not(run: Run, leases: Any) -> None:
    deleted = {"id": "22222222-2222-4333-8444-000000000002", "deleted_at": "2026-11-20T10:00:00Z"}
    leases.get(f"{URL}/leases", **says("leases", []))
    leases.get(f"{URL}/leases?state=past", **says("leases", [deleted, {"id": ID, "deleted_at": None}]))
    assert run("lease", "show", "training", "-f", "value", "-c", "id")[:2] == (0, f"{ID}\n")
    leases.get(f"{URL}/leases?state=past", **says("leases", [deleted]))
    assert run("lease", "show", "training")[0] == 3


def test_a_name_is_looked_up_without_a_list_of_all(run: Run, leases: Any) -> None:
    run("lease", "show", "training")
    asked = sent(leases, "GET")[0].qs
    assert asked == {"name": ["training"], "fields": ["id"], "limit": ["100"]}


@pytest.mark.parametrize("words", [("lease", "list", "--limit", "1"), ("history",), ("lease", "list", "--mine")])
def test_an_old_service_is_told_of(run: Run, old_service: Any, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "does not speak microversion 1.1" in err


KEYSTONE = "https://keystone.example/v3"
LOGIN = ("--os-auth-url", KEYSTONE, "--os-username", "curie", "--os-password", "radium", "--os-project-name", "physics")
PROJECT_ID, USER_ID = "a" * 32, "b" * 32
AS_CURIE = ("--os-auth-type", "password", "--os-endpoint-override", URL, *LOGIN)


@pytest.fixture
def keystone(leases: Any) -> Any:
    """Keystone, which knows curie of the project physics and tells more only if the test says so."""
    token = fixture.V3Token(
        project_id=PROJECT_ID, project_name="physics", user_id=USER_ID, user_name="curie", audit_id="a"
    )
    leases.get(KEYSTONE, json={"version": fixture.V3Discovery(KEYSTONE)})
    leases.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t0k3n"})
    leases.get(f"{KEYSTONE}/projects", status_code=403, json={"error": {"code": 403, "message": "No."}})
    leases.get(f"{KEYSTONE}/users", status_code=403, json={"error": {"code": 403, "message": "No."}})
    return leases


def test_projects_and_users_are_given_by_name_where_keystone_tells_them(run: Run, keystone: Any) -> None:
    keystone.get(f"{KEYSTONE}/projects?name=Math", json={"projects": [{"id": "c" * 32, "name": "math"}]})
    keystone.get(f"{KEYSTONE}/users?name=noether", json={"users": [{"id": "d" * 32, "name": "noether"}]})
    code, _, err = run(*AS_CURIE, "lease", "list", "--project", "Math", "--user", "noether")
    assert (code, err) == (0, "")
    assert query(keystone)["project_id"] == ["c" * 32]
    assert query(keystone)["user_id"] == ["d" * 32]


def test_ids_are_not_looked_up(run: Run, keystone: Any) -> None:
    assert run(*AS_CURIE, "history", "--project", "c" * 32, "--user", ID)[0] == 0
    assert query(keystone)["user_id"] == [ID]
    assert not [request for request in keystone.request_history if "name" in request.qs]


def test_who_may_not_look_names_up_has_their_own(run: Run, keystone: Any) -> None:
    assert run(*AS_CURIE, "lease", "list", "--project", "physics", "--user", "curie")[::2] == (0, "")
    assert (query(keystone)["project_id"], query(keystone)["user_id"]) == ([PROJECT_ID], [USER_ID])


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        (
            {"status_code": 403},
            4,
            "--user: the id of noether is not known, Keystone does not let you look it up by its name; give the id\n",
        ),
        (
            {"status_code": 500},
            7,
            "--user: the id of noether is not known, Keystone answered with HTTP 500; give the id\n",
        ),
        ({"json": {"users": []}}, 3, "--user: there is no user called noether that you may see; give its id\n"),
        (
            {"json": {"users": [{"id": "one", "name": "noether"}, {"id": "two", "name": "noether"}]}},
            3,
            "--user: several users are called noether; give an id: one, two\n",
        ),
    ],
)
def test_a_name_that_keystone_does_not_tell_is_refused(
    run: Run, keystone: Any, answer: dict[str, Any], code: int, sentence: str
) -> None:
    keystone.get(f"{KEYSTONE}/users", **answer)
    assert run(*AS_CURIE, "lease", "list", "--user", "noether")[::2] == (code, sentence)
    assert not [request for request in keystone.request_history if request.path.endswith("/leases")]


def test_what_users_have_deleted_is_told(run: Run, leases: Any) -> None:
    made = [{"id": "server-1", "deleted_at": "2026-11-23T12:00:00Z"}, {"id": "server-2", "deleted_at": None}]
    leases.get(f"{URL}/leases/{ID}", **says("lease", {**FULL, "reservations": [{**RESERVATION, "made": made}]}))
    _, out, _ = run("lease", "show", "training", "--long", "-f", "value", "-c", "reservations")
    assert "  server-1 was deleted, seen 2026-11-23 13:00+01:00" in out.splitlines()
    assert "server-2" not in out


@pytest.mark.parametrize("words", [(), ("--long",), ("--status", "waiting,active")])
def test_a_status_is_the_same_whatever_else_is_shown(run: Run, service: Any, words: tuple[str, ...]) -> None:
    new = {"OpenStack-API-Version": SPOKEN, "Content-Type": "application/json"}
    waits = {**LEASE, "name": "waits", "status": "CREATING"}
    others = {**LEASE, "id": "2", "name": "fails", "status": "ERROR"}
    service.get(f"{URL}/leases", **says("leases", [waits, others]))
    waiting = [{**waits, "status": "WAITING"}]
    newest = {"OpenStack-API-Version": SPOKEN}
    answer = [*waiting, others] if words else waiting
    service.get(f"{URL}/leases", request_headers=newest, json={"leases": answer}, headers=new)
    code, out, err = run("lease", "list", *words, "-f", "value", "-c", "name", "-c", "status", "--sort-by", "status")
    assert (code, sorted(out.splitlines())) == (0, ["fails ERROR", "waits WAITING"]), err


def test_an_old_service_tells_the_statuses_that_it_knows(run: Run, old_service: Any) -> None:
    failed = {**LEASE, "status": "ERROR"}
    unknown = {"errors": [{"status": 406, "title": "Not acceptable", "detail": "it is not known"}]}
    headers = {"OpenStack-API-Version": "reservation 1.1"}
    old_service.get(f"{URL}/leases", request_headers=headers, json=unknown, status_code=406)
    old_service.get(f"{URL}/leases/{ID}", request_headers=headers, json=unknown, status_code=406)
    for path in ("leases", f"leases/{ID}"):
        body = {"leases": [failed]} if path == "leases" else {"lease": failed}
        plain = {"json": body, "additional_matcher": lambda request: "OpenStack-API-Version" not in request.headers}
        old_service.get(f"{URL}/{path}", **plain)
    assert run("lease", "list", "-f", "value", "-c", "status")[:2] == (0, "ERROR\n")
    assert run("lease", "show", ID, "-f", "value", "-c", "status")[:2] == (0, "ERROR\n")
