# SPDX-License-Identifier: Apache-2.0
"""Further forms of which nothing can be sent but what the fields show: operations on leases, links, resources."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.web.conftest import ADMIN
from tests.web.test_forms import DIALOG, END, START, Form, asked, lease_of, of_lease, walk, wire

# Each has few fields, and its test takes long.
EDITS = 12
WORDS = ("fan", "two words", " spaces ")


def form_of(
    address: Callable[[str], str],
    button: str,
    body: dict[str, Callable[[dict[str, Any]], object]],
    **more: Any,
) -> Form:
    """Return a dialog whose fields are those of the body."""
    return Form(address, tuple(body), DIALOG, button, body, edits=EDITS, **more)


def mergeable(pages: str) -> str:
    """Book two leases of the same dates beside one, and return where it is merged."""
    for _ in range(2):
        lease_of(pages)
    return of_lease("merge")(pages)


def window_of(pages: str) -> str:
    """Open a maintenance window, and return where it is changed."""
    host = asked(pages, ADMIN, "GET", "v1/resources/host")["resources"][0]["id"]
    body = {"name": "edited", "start_date": wire(START), "end_date": wire(END), "hosts": [host]}
    made = asked(pages, ADMIN, "POST", "v1/maintenances", body)["maintenance"]
    return f"{pages}maintenance?id={made['id']}&do=change"


def disabling(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Disable ")).first.click()


def editing(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Edit ")).first.click()


def registering_a_host(page: Page) -> None:
    """Show a hypervisor that is not registered, and choose it."""
    one = {"id": "1", "name": "spare", "state": "up", "servers": 0}
    found = {"candidates": [one], "links": []}
    page.route("**/v1/resources/host/candidates?*", lambda route: route.fulfill(json=found))
    page.get_by_role("button", name="Register hosts").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Add a property").click()
    dialog.get_by_label("Name of the property").fill("rack")


def registering_a_resource(page: Page) -> None:
    page.get_by_role("button", name="Register a ").click()


def any_swap(page: Page) -> None:
    """Let every host do, also one that there is not."""
    page.route("**/swap?dry_run=true", lambda route: route.fulfill(json={"leases": []}))


def room(page: Page) -> None:
    """Have room that can be made."""
    lease = {"lease": {"status": "IN_PROGRESS"}}
    page.route("**/v1/leases?dry_run=true", lambda route: route.fulfill(json=lease))
    page.get_by_role("region", name="Make room").get_by_role("button").click()


def all_taken(pages: str) -> str:
    hosts = len(asked(pages, ADMIN, "GET", "v1/resources/host")["resources"])
    lease_of(pages, min=hosts, max=hosts)
    wanted = {"resource_type": "physical:host", "min": hosts, "max": hosts}
    asked(pages, ADMIN, "POST", "v1/leases", {"name": "now", "end_date": "+P7D", "reservations": [wanted]})
    return f"{pages}?min=1"


OPERATIONS = {
    "swap": form_of(
        of_lease("swap", min=3, max=3),
        "^Swap$",
        {"Give up": lambda b: b["host"], "Get instead": lambda b: b.get("for")},
        who=ADMIN,
        prepare=any_swap,
        texts={"Give up": (), "Get instead": WORDS},
    ),
    "merge": form_of(mergeable, "^Merge$", {"Take over": lambda b: b["with"]}, texts={"Take over": ()}),
    "make room": form_of(
        all_taken, "^Make room$", {"Name": lambda b: b["name"]}, who=ADMIN, prepare=room, texts={"Name": WORDS}
    ),
    "calendar link": form_of(
        of_lease("feed"),
        "^Make a link$",
        {
            "It shows": lambda b: b["kind"],
            # Without a name it is called so.
            "Name": lambda b: None if b["name"] == "calendar" else b["name"],
        },
        texts={"It shows": (), "Name": WORDS},
    ),
    "change of a window": form_of(
        window_of,
        "^Change$",
        {
            "Name": lambda b: b.get("name", "edited"),
            "From": lambda b: b.get("start_date", wire(START)),
            "Until": lambda b: b.get("end_date", wire(END)),
        },
        who=ADMIN,
        texts={"Name": WORDS},
    ),
    "disable": form_of(
        lambda pages: pages + "hosts",
        "^Disable$",
        {
            "Reason": lambda b: b["disabled"]["reason"],
            "Until (it is enabled by itself then)": lambda b: b["disabled"]["until"],
        },
        who=ADMIN,
        prepare=disabling,
        texts={"Reason": WORDS},
    ),
    "edit": form_of(
        lambda pages: pages + "hosts",
        "^Save$",
        {"Only for these projects": lambda b: ", ".join(b["authorized_projects"] or []) or None},
        who=ADMIN,
        prepare=editing,
        texts={"Only for these projects": ("p-1", "p-1, p-2")},
    ),
    "register a host": form_of(
        lambda pages: pages + "hosts",
        "^Register 1 host$",
        {"Value of rack": lambda b: b["properties"]["rack"].strip() or None},
        who=ADMIN,
        prepare=registering_a_host,
        texts={"Value of rack": WORDS},
    ),
    "register a resource": form_of(
        lambda pages: pages + "resources?kind=generic",
        "^Register$",
        # Of what the service would refuse it says so itself.
        {"Name": lambda b: b.get("name", "").strip() or None},
        who=ADMIN,
        prepare=registering_a_resource,
        texts={"Name": WORDS},
    ),
}
"""Not among them: ending a lease, which has no fields."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_random_edits_of_an_operation_send_what_its_fields_show(shared, page_of, complaints, name):
    complaints.expected |= {"status of 409", "status of 400", "status of 404"}
    walk(shared, page_of, OPERATIONS[name])
