# SPDX-License-Identifier: Apache-2.0
"""Leases that nobody uses end, and what an external service decides holds, as the options in ``blazar.conf`` say."""

from __future__ import annotations

import pytest

from tests.configured import Configured

ON = ("[unused]", "mode = on", "unused_after = 1200", "warn_before = 600", "undo = 60")


def _status_after(tmp_path, minutes: int, *lines: str) -> str:
    service = Configured(tmp_path, *lines)
    lease = service.book(end="2030-04-02T12:00:00Z").json["lease"]
    service.pass_time(minutes=minutes)
    return service.ask("GET", f"/v1/leases/{lease['id']}").json["lease"]["status"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("minutes", "line", "status"),
    [
        (18, "", "ACTIVE"),
        (45, "", "TERMINATED"),
        (45, "exempt_projects = physics", "ACTIVE"),
        (45, "policy = project=physics mode=off", "ACTIVE"),
    ],
    ids=["not yet", "released", "exempt", "a policy"],
)
def test_what_nobody_uses_ends_as_the_file_says(tmp_path, minutes, line, status):
    assert _status_after(tmp_path, minutes, *ON, line) == status


@pytest.mark.parametrize("mode", ["off", "dry_run"])
def test_only_in_the_mode_on_it_ends(tmp_path, mode):
    assert _status_after(tmp_path, 45, ON[0], f"mode = {mode}", *ON[2:]) == "ACTIVE"


SERVICE = (
    "[enforcement]",
    "enabled_filters = ExternalServiceFilter",
    "external_service_base_endpoint = http://127.0.0.1:9/",
    "external_service_attempts = 1",
)


@pytest.mark.parametrize(("what", "status"), [("deny", 503), ("allow", 201)])
def test_a_service_that_does_not_answer_denies_or_allows_as_the_file_says(tmp_path, what, status):
    service = Configured(tmp_path, *SERVICE, f"external_service_on_error = {what}")
    assert service.book().status_code == status


@pytest.mark.parametrize(("told_apart", "given"), [(True, True), (False, False)])
def test_a_lease_is_given_to_another_project_if_the_file_says_that_the_service_knows(tmp_path, told_apart, given):
    lines = ("external_service_on_error = allow", f"external_service_transfers = {told_apart}")
    service = Configured(tmp_path, *SERVICE, *lines)
    lease = service.book().json["lease"]
    answer = service.ask("POST", f"/v1/leases/{lease['id']}/transfer", {"project_id": "biology"})
    assert (answer.status_code < 300) is given, answer.text
