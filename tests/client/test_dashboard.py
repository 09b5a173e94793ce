# SPDX-License-Identifier: Apache-2.0
"""The dashboard that exists, unmodified, in Horizon against standalone mode: its panels of leases and of hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import upstream
from tests.client.service import Command, serving

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("dashboard_driver.py")
RUN = "import django, runpy, sys; django.setup(); runpy.run_path(sys.argv.pop(1))"
SETTINGS = {"DJANGO_SETTINGS_MODULE": "blazar_dashboard.test.settings"}
"""Django is set up before anything of Horizon can be imported."""


class Visit:
    """What a browser got from Horizon, by step."""

    def __init__(self, seen: dict[str, dict]) -> None:
        self._seen = seen

    def status(self, step: str) -> int:
        return self._seen[step]["status"]

    def said(self, step: str) -> str:
        """Return the last message that was shown to the user."""
        return self._seen[step]["said"][-1]

    def text(self, step: str) -> str:
        return re.sub(r"(<[^>]*>|\s)+", " ", self._seen[step]["text"])

    def json(self, step: str) -> dict:
        return json.loads(self._seen[step]["text"])

    def statuses(self) -> set[int]:
        return {found["status"] for found in self._seen.values()}

    def troubles(self) -> set[str]:
        return {step for step in self._seen if re.search("Unable to|An error occurred", self.text(step))}


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    programs = upstream.programs(upstream.DASHBOARD_REQUIREMENTS, upstream.DASHBOARD)
    with serving(Command(programs / "blazar", {}), tmp_path_factory.mktemp("dashboard") / "var") as service:
        command = [str(programs / "python"), "-c", RUN, str(DRIVER), service.url]
        settings = {**os.environ, **SETTINGS}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=settings)
    assert done.returncode == 0, done.stderr
    return Visit(json.loads(done.stdout))


@pytest.mark.timeout(900)
def test_every_page_is_shown_and_nothing_fails_but_what_is_refused(visit):
    assert visit.statuses() == {200, 302}
    assert visit.troubles() == {"refused lease"}


def test_hosts_are_made_shown_changed_and_deleted(visit):
    assert "node-1" in visit.text("hosts")
    assert "node-2" in visit.text("hosts")
    assert "A100" in visit.text("host")
    assert visit.said("update host") == "Host was successfully updated."
    assert "r7" in visit.text("host updated")
    assert visit.said("delete host").startswith("Deleted Host")


def test_leases_of_hosts_and_of_servers_are_made_listed_changed_and_deleted(visit):
    assert visit.said("create lease") == "Lease of hosts was successfully created."
    assert visit.said("create servers") == "Lease of servers was successfully created."
    leases = visit.text("leases")
    assert all(text in leases for text in ("of hosts", "of servers", "PENDING", "2040-05-01 10:00 UTC"))
    assert visit.said("update lease") == "Lease update started."
    changed = visit.text("lease updated")
    assert "longer" in changed
    assert re.search(r"2040-05-01T13:00:00|2040-05-01 13:00|May 1, 2040, 1 p\.m\.", changed), changed
    assert "No items to display" in visit.text("leases deleted")


def test_a_refusal_is_shown_with_its_reason(visit):
    assert "Not enough hosts available: at least 9 requested, 2 match" in visit.said("refused lease")


def test_the_calendar_has_the_hosts_and_what_is_promised_of_them(visit):
    assert "Host Calendar" in visit.text("calendar")
    data = visit.json("calendar data")
    assert data["row_attr"] == "hypervisor_hostname"
    assert {row["hypervisor_hostname"] for row in data["resources"]} == {"node-1", "node-2"}
    times = {(each["start_date"], each["end_date"]) for each in data["reservations"]}
    assert times == {("2040-05-01T10:00:00Z", "2040-05-01T12:00:00Z")}
    assert {each["hypervisor_hostname"] for each in data["reservations"]} == {"node-1", "node-2"}
