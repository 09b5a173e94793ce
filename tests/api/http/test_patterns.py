# SPDX-License-Identifier: Apache-2.0
"""Patterns of bodies are those of JSON Schema: the end is the end, and digits are those of ASCII."""

from __future__ import annotations

import pytest

from blazar.api.http.bodies import BoundedValidator
from blazar.model.resources.resource import HOST
from tests.configured import Configured

ROOM = {"resource_type": "physical:host", "min": 1, "max": 1}
BODY = {
    "name": "lab",
    "start_date": "2030-04-02T10:00:00Z",
    "end_date": "2030-04-02T14:00:00Z",
    "reservations": [ROOM],
}


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^[0-9]{1,9}$", "12", "12\n"),
        (r"^\d+$", "12", "\u0661"),
        (r"^a\$", "a$ more", "a"),
        (r"^(a|b)$", "b", "b\n\n"),
        ("b", "abc", "ac"),
    ],
)
def test_a_pattern_fits_what_it_says_and_nothing_after_it(pattern, good, bad):
    validator = BoundedValidator({"type": "string", "pattern": pattern})
    assert (validator.is_valid(good), validator.is_valid(bad)) == (True, False)


def test_a_line_feed_after_an_amount_or_an_address_is_refused(tmp_path):
    made = Configured(tmp_path)
    found = made.ask("POST", "/v1/leases?dry_run=true", {**BODY, "max_price": "640\n"})
    assert (found.status_code, found.json["errors"][0]["pointer"]) == (400, "/max_price")
    operator, (host, *_) = "olga:operators:admin", made.store.resources.catalog(HOST).resources
    path, change = f"/v1/power/hosts/{host.external_id}", {"adapter": "simulated", "target": "node-1"}
    asked = [made.ask("PUT", path, {**change, "target": target}, who=operator) for target in ("node-1", "node-1\n")]
    assert [answer.status_code for answer in asked] == [200, 400]
