# SPDX-License-Identifier: Apache-2.0
"""What one request may read is what the options in ``blazar.conf`` say: from the file to the answer."""

from __future__ import annotations

import pytest

from tests.configured import Configured

LINES = (
    "[api]",
    "page_size = 2",
    "max_page_size = 3",
    "calendar_page_size = 1",
    "max_calendar_page_size = 2",
    "max_range = 3",
    "range_back = 2",
    "range_back_members = 1",
    "range_ahead = 5",
    "capacity_points = 200",
    "capacity_groups = 1",
    "max_properties = 2",
    "max_property_values = 1",
    "feeds_per_user = 1",
    "[availability]",
    "max_range = 4",
    "openings = 1",
    "max_openings = 2",
)
OPERATOR = "root:operators:admin"


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Configured:
    made = Configured(tmp_path_factory.mktemp("reads"), *LINES, hosts=4)
    for _ in range(4):
        assert made.book(hosts=1).status_code == 201
    return made


@pytest.mark.slow
def test_a_page_has_as_many_items_as_the_file_says(service):
    assert len(service.ask("GET", "/v1/leases").json["leases"]) == 2
    assert len(service.ask("GET", "/v1/leases?limit=100").json["leases"]) == 3


def test_a_page_of_the_calendar_has_as_many_resources_as_the_file_says(service):
    assert len(service.ask("GET", "/v1/calendar").json["calendar"]["resources"]) == 1
    assert len(service.ask("GET", "/v1/calendar?limit=100").json["calendar"]["resources"]) == 2


def _status(service, query: str, who: str = "alice:physics", path: str = "calendar") -> int:
    return service.ask("GET", f"/v1/{path}?{query}", who=who).status_code


@pytest.mark.parametrize("path", ["calendar", "capacity"])
def test_a_range_is_as_long_as_the_file_says(service, path):
    assert _status(service, "from=now&to=%2B3d", path=path) == 200
    assert _status(service, "from=now&to=%2B4d", path=path) == 400


@pytest.mark.parametrize("path", ["calendar", "capacity"])
def test_a_range_reaches_back_as_far_as_the_file_says(service, path):
    """The clock stands at noon of 1 April."""
    two_days, three_days = "from=2030-03-30T13:00:00Z&to=now", "from=2030-03-30T11:00:00Z&to=2030-03-31T12:00:00Z"
    assert _status(service, two_days, OPERATOR, path) == 200
    assert _status(service, two_days, path=path) == 400
    assert _status(service, three_days, OPERATOR, path) == 400


@pytest.mark.parametrize("path", ["calendar", "capacity"])
def test_a_range_reaches_ahead_as_far_as_the_file_says(service, path):
    assert _status(service, "from=2030-04-05T12:00:00Z&to=2030-04-06T11:00:00Z", path=path) == 200
    assert _status(service, "from=2030-04-05T12:00:00Z&to=2030-04-06T13:00:00Z", path=path) == 400


def test_capacity_has_as_many_points_as_the_file_says(service):
    assert _status(service, "from=now&to=%2B3h&step=PT1M", path="capacity") == 200
    assert _status(service, "from=now&to=%2B4h&step=PT1M", path="capacity") == 400


@pytest.mark.parametrize(("key", "status"), [("hypervisor_type", 200), ("hypervisor_hostname", 400)])
def test_capacity_has_as_many_groups_as_the_file_says(service, key, status):
    """All hosts are of one type, and each has its name."""
    assert _status(service, f"from=now&to=%2B1h&step=PT1H&group_by={key}", OPERATOR, "capacity") == status


def test_as_many_properties_and_values_are_shown_as_the_file_says(service):
    for number in range(1, 5):
        change = {"properties": {"aisle": f"a{number}"}}
        assert service.ask("PUT", f"/v1/resources/host/{number}", change, who=OPERATOR).status_code == 200
    shown = service.ask("GET", "/v1/properties").json["properties"]
    assert len(shown) == 2
    (aisle,) = [each for each in shown if each["name"] == "aisle"]
    assert len(aisle["values"]) == 1


def test_a_user_has_as_many_feeds_as_the_file_says(service):
    feed = {"kind": "user", "name": "phone"}
    assert service.ask("POST", "/v1/feeds", feed).status_code == 201
    refused = service.ask("POST", "/v1/feeds", feed)
    assert (refused.status_code, refused.json["errors"][0]["data"]) == (400, {"maximum": 1})


def test_a_search_for_free_time_covers_what_the_file_says(service):
    ask = {"duration": "1h", "earliest": "now", "reservations": [{"resource_type": "physical:host", "min": 1}]}
    assert service.ask("POST", "/v1/availability", {**ask, "latest": "+4d"}).status_code == 200
    assert service.ask("POST", "/v1/availability", {**ask, "latest": "+5d"}).status_code == 400


def test_an_answer_has_as_many_openings_as_the_file_says(service):
    for _ in range(4):
        service.book(start="2030-04-01T15:00:00Z", end="2030-04-01T16:00:00Z")
        service.book(start="2030-04-01T18:00:00Z", end="2030-04-01T19:00:00Z")
    ask = {"duration": "1h", "earliest": "now", "latest": "+2d"}
    ask["reservations"] = [{"resource_type": "physical:host", "min": 4}]
    found = service.ask("POST", "/v1/availability", ask).json["availability"]["openings"]
    assert len(found) == 1
    found = service.ask("POST", "/v1/availability", {**ask, "limit": 20}).json["availability"]["openings"]
    assert len(found) == 2
