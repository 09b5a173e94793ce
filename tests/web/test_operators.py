# SPDX-License-Identifier: Apache-2.0
"""What operators do on their pages: with leases of all projects, and with hosts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, drawn, serious
from tests.web.service import asked, booked, leases_of

FEED = re.compile(r"/feeds/.*\.ics")


def test_a_lease_of_another_project_is_extended_and_deleted_from_its_row(shared, page_of):
    booked(shared, ALICE, "theirs", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(shared + "all-leases", ADMIN)
    expect(page.get_by_role("row", name=re.compile("theirs"))).to_contain_text("physics")
    page.get_by_role("button", name="Extend theirs").click()
    dialog = page.get_by_role("dialog", name="Extend theirs")
    expect(dialog.get_by_text("This fits: 1 day longer.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(dialog).to_have_count(0)
    assert leases_of(shared, ALICE)[0]["end_date"] == "2031-03-05T08:00:00Z"
    page.get_by_role("button", name="More for theirs").click()
    assert serious(page) == []
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete: theirs").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="There are no leases")).to_be_visible()
    # The row that had the focus is gone: the page has it.
    expect(page.locator("#main")).to_be_focused()


def test_the_overview_says_what_is_free_of_every_kind(small, page_of):
    pool = {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 2000}
    asked(small, ADMIN, "POST", "v1/resources/volume", pool)
    page = page_of(small + "overview", ADMIN)
    kinds = page.get_by_role("group", name="Kind of resource")
    # Kinds of which the site has nothing are left out.
    expect(kinds.get_by_role("button")).to_have_count(2)
    expect(kinds.get_by_role("button", name="Hosts")).to_have_attribute("aria-pressed", "true")
    kinds.get_by_role("button", name="Volume pools 2,000 of 2,000 GiB free").click()
    expect(page.get_by_role("img", name=re.compile("^Now 2,000 of 2,000 GiB in volume pools are free"))).to_be_visible()
    page.wait_for_url(re.compile(r"type=virtual:volume|type=virtual%3Avolume"))
    assert serious(page) == []


def test_a_lease_that_begins_soon_counts_for_no_number_of_now(shared, page_of):
    soon = (datetime.now(UTC) + timedelta(minutes=25)).strftime("%Y-%m-%dT%H:%M:%SZ")
    lease = booked(shared, ALICE, "soon", start=soon, end="+P1D")
    hosts = len(asked(shared, ADMIN, "GET", "v1/resources/host")["resources"])
    volume = {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 2000}
    pool = asked(shared, ADMIN, "POST", "v1/resources/volume", volume)
    page = page_of(shared + "overview", ADMIN)
    tile = page.get_by_role("group", name="Kind of resource").get_by_role(
        "button", name=f"Hosts {hosts} of {hosts} free"
    )
    expect(tile).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(f"^Now {hosts} of {hosts} hosts are free"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(f"now on: {hosts - 1}, "))).to_be_visible()
    asked(shared, ADMIN, "DELETE", f"v1/leases/{lease['id']}")
    asked(
        shared,
        ADMIN,
        "DELETE",
        f"v1/resources/volume/{pool['resource']['id']}",
    )


def test_a_pool_of_which_a_part_is_promised_is_not_called_full(small, page_of):
    fields = {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 2000}
    pool = asked(small, ADMIN, "POST", "v1/resources/volume", fields)["resource"]
    volume = {"resource_type": "virtual:volume", "size": 500, "volume_type": "fast", "amount": 1}
    wanted = {"name": "data", "start_date": "now", "end_date": "+P3D", "reservations": [volume]}
    asked(small, ALICE, "POST", "v1/leases", wanted)
    page = page_of(small + "resources?kind=volume", ADMIN)
    row = page.get_by_role("row", name=re.compile("storage-1"))
    expect(row).to_contain_text("partly promised")
    expect(row).to_contain_text("1,500 GiB of 2,000 GiB free, promised until")
    page.goto(f"{small}resource?kind=volume&id={pool['id']}")
    expect(page.get_by_role("row", name=re.compile("^data"))).to_contain_text("500 GiB")
    assert serious(page) == []
    page.goto(small + "calendar?type=virtual:volume&by=volume_type")
    heat = drawn(page).locator(".heat").first
    expect(heat).to_have_attribute("title", re.compile("1500 of 2000 GiB free in this hour"))
    expect(page.get_by_text("Numbers: how many GiB are free")).to_be_visible()
    label = page.locator(".block-lease .block-label")
    expect(label).to_have_text("physics: data")
    for name in ("more", "most"):
        asked(small, ALICE, "POST", "v1/leases", {**wanted, "name": name})
    page.reload()
    # Of three beside each other no name could be read.
    expect(label).to_have_count(3)
    expect(label.first).to_be_hidden()


def test_the_leases_of_a_user_and_the_hosts_that_are_promised_now_can_be_listed(shared, page_of):
    host = host_of(shared, booked(shared, ALICE, "of alice"))
    booked(shared, "bob:physics:member", "of bob", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    page = page_of(shared + "all-leases", ADMIN)
    rows = page.locator("main tbody tr")
    expect(rows).to_have_count(2)
    proposed = page.locator("datalist").last.locator("option")
    expect(proposed).to_have_count(2)
    page.get_by_role("link", name="alice", exact=True).click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("of alice")
    expect(page.get_by_role("combobox", name="User")).to_have_value("alice")
    assert serious(page) == []
    page.goto(shared + "hosts")
    page.get_by_role("button", name="in service").click()
    expect(rows.nth(1)).to_be_visible()
    page.get_by_role("button", name="promised now").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(host)


def test_who_disables_a_host_sees_what_that_means_and_no_past_date_is_sent(shared, page_of):
    host = host_of(shared, booked(shared, ALICE, "theirs"))
    page = page_of(shared + "hosts", ADMIN)
    page.get_by_role("button", name=f"Disable {host}", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Disable {host}")
    expect(dialog).to_contain_text("1 lease has it, now or later: it keeps it while it works.")
    expect(dialog).to_contain_text("also not for times after the date below")
    dialog.get_by_role("textbox", name="Until (it is enabled by itself then)").fill("2 Jan 2020 10:00")
    expect(dialog).to_contain_text("This has passed. Give a later time, or leave it empty.")
    expect(dialog.get_by_role("button", name="Disable", exact=True)).to_be_disabled()
    assert serious(page) == []


def test_leases_that_a_maintenance_meets_need_attention(shared, page_of):
    hosts = asked(shared, ADMIN, "GET", "v1/resources/host")["resources"]
    dates = {"start": "2031-03-03T08:00:00Z", "end": "2031-03-04T08:00:00Z"}
    booked(shared, ALICE, "all of it", **dates, min=len(hosts), max=len(hosts))
    window = {"name": "pump", "start_date": dates["start"], "end_date": dates["end"], "hosts": [hosts[0]["id"]]}
    asked(shared, ADMIN, "POST", "v1/maintenances", window)
    page = page_of(shared + "overview", ADMIN)
    card = page.get_by_role("region", name="Needs attention")
    expect(card.get_by_role("link", name="all of it")).to_be_visible()
    assert serious(page) == []
    card.get_by_role("link", name="1 lease keeps hosts in the maintenance pump").click()
    expect(page.get_by_role("heading", name="pump")).to_be_visible()


def test_the_table_lists_the_time_that_is_chosen_and_its_leases_and_hosts_are_links(shared, page_of):
    lease = booked(shared, ALICE, "near")
    far = (datetime.now(UTC) + timedelta(days=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    booked(shared, ALICE, "far", start=far, end="+P1D")
    page = page_of(shared + "calendar?by=none&view=table", ADMIN)
    expect(page.get_by_role("link", name=re.compile("near"))).to_have_attribute("href", re.compile(str(lease["id"])))
    expect(page.get_by_role("link", name=re.compile("far"))).to_have_count(0)
    assert serious(page) == []
    page.get_by_role("button", name="Month", exact=True).click()
    expect(page.get_by_role("link", name=re.compile("far"))).to_be_visible()
    page.get_by_role("button", name="Week", exact=True).click()
    expect(page.get_by_role("link", name=re.compile("far"))).to_have_count(0)
    page.get_by_role("button", name="Later").click()
    expect(page.get_by_role("link", name=re.compile("far"))).to_be_visible()
    name = host_of(shared, lease)
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_a_host_gets_a_link_for_calendars(small, page_of):
    host = asked(small, ADMIN, "GET", "v1/resources/host?limit=1")["resources"][0]
    name = host["name"]
    page = page_of(small + "hosts", ADMIN)
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("button", name="Calendar link").click()
    dialog = page.get_by_role("dialog", name=f"Calendar links of {name}", exact=True)
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_text(FEED)).to_be_visible()
    expect(dialog.get_by_role("button", name=f"Revoke the link {name}")).to_be_visible()
    assert serious(page) == []
    assert [one["resource"] for one in asked(small, ADMIN, "GET", "v1/feeds")["feeds"]] == [host["label"]]


def test_a_resource_of_any_kind_is_registered_by_the_form_of_its_kind(small, page_of, complaints):
    # Programs see a refusal by its status; the browser reports it, too.
    complaints.expected.add("400 (BAD REQUEST)")
    page = page_of(small + "resources?kind=device", ADMIN)
    expect(page.get_by_role("heading", name="There are no devices yet")).to_be_visible()
    page.get_by_role("button", name="Register a device").click()
    dialog = page.get_by_role("dialog", name="Register a device")
    dialog.get_by_label("Name", exact=True).fill("jetson 1")
    dialog.get_by_label("Device driver").select_option(label="none")
    dialog.get_by_role("button", name="Add a property").click()
    dialog.get_by_label("Name of the property").fill("gpu")
    dialog.get_by_label("Value of gpu").fill("Orin")
    dialog.get_by_role("button", name="Register", exact=True).click()
    # The service's own sentence is beside the field, and what was typed stays.
    name = dialog.get_by_label("Name", exact=True)
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_value("jetson 1")
    assert serious(page) == []
    name.fill("jetson-1")
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("heading", name="jetson-1")).to_be_visible()
    expect(page.get_by_text("gpu = Orin")).to_be_visible()
    page.get_by_role("button", name="Disable jetson-1").click()
    dialog = page.get_by_role("dialog", name="Disable jetson-1")
    dialog.get_by_label("Reason").fill("new firmware")
    dialog.get_by_role("button", name="Disable").click()
    expect(page.get_by_text("new firmware")).to_be_visible()
    assert serious(page) == []
    member = page_of(small + "resources?kind=device", ALICE)
    expect(member.get_by_role("row", name=re.compile("jetson-1"))).to_contain_text("out of use")
    expect(member.get_by_text("new firmware")).to_have_count(0)
    expect(member.get_by_role("button", name="Register a device")).to_have_count(0)
    page.get_by_role("button", name="Remove jetson-1").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove jetson-1").click()
    expect(page.get_by_role("heading", name="There are no devices yet")).to_be_visible()


def test_an_address_that_the_cloud_does_not_give_out_is_chosen_and_registered(small, page_of, complaints):
    complaints.expected |= {"status of 400", "status of 409"}
    page = page_of(small + "resources?kind=floatingip", ADMIN)
    page.get_by_role("button", name="Register a floating IP").click()
    dialog = page.get_by_role("dialog", name="Register a floating IP")
    dialog.get_by_role("button", name="Register", exact=True).click()
    # What is refused has the name that its field shows.
    expect(dialog.get_by_text("Floating network id is missing")).to_be_visible()
    expect(dialog.get_by_text("Floating IP address is missing")).to_be_visible()
    offered = dialog.get_by_label("What the cloud has (126)")
    expect(offered.get_by_role("option")).to_have_count(127)
    offered.select_option(label="203.0.113.7 on public")
    expect(dialog.get_by_label("Floating IP address")).to_have_value("203.0.113.7")
    assert serious(page) == []
    dialog.get_by_role("button", name="Register", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("203.0.113.7"))).to_be_visible()
    (made,) = asked(small, ADMIN, "GET", "v1/resources/floatingip")["resources"]
    assert made["attributes"]["floating_ip_address"] == "203.0.113.7"
    # A link opens the form; it proposes what can be registered, and not what is.
    page.goto(small + "resources?kind=floatingip&register=1")
    proposed = dialog.get_by_role("group", name=re.compile("^Floating IP address: one of"))
    expect(proposed.get_by_role("button").first).to_be_visible()
    expect(proposed.get_by_role("button", name="203.0.113.7", exact=True)).to_have_count(0)
    expect(dialog.get_by_label("What the cloud has (125)")).to_be_visible()
    expect(dialog.get_by_role("option", name="203.0.113.7 on public")).to_have_count(0)
    dialog.get_by_label("Floating network id").fill(made["attributes"]["floating_network_id"])
    dialog.get_by_label("Floating IP address").fill("203.0.113.7")
    dialog.get_by_role("button", name="Register", exact=True).click()
    refused = dialog.get_by_text("is registered already")
    expect(refused).to_be_visible()
    offered = dialog.get_by_label("What the cloud has (125)")
    offered.select_option(label="203.0.113.8 on public")
    expect(refused).to_have_count(0)


def test_what_two_regions_have_under_one_id_is_told_apart(small, page_of):
    def proposed(region: str, number: int) -> dict[str, object]:
        given = {"floating_network_id": "public", "floating_ip_address": f"203.0.113.{number}"}
        return {"id": "public", "name": "an address", "region": region, "registration": given}

    answer = {"candidates": [proposed("north", 8), proposed("south", 9)]}
    page = page_of(small + "resources?kind=floatingip", ADMIN)
    page.route(re.compile("/floatingip/candidates"), lambda route: route.fulfill(json=answer))
    page.get_by_role("button", name="Register a floating IP").click()
    dialog = page.get_by_role("dialog", name="Register a floating IP")
    dialog.get_by_label("What the cloud has (2)").select_option(label="an address (south)")
    expect(dialog.get_by_label("Floating IP address")).to_have_value("203.0.113.9")
    answer["candidates"] = []
    # The dialog is in the address, and so is open again.
    page.reload()
    expect(dialog.get_by_text("The cloud has no other floating IPs to register.")).to_be_visible()


def host_of(pages: str, lease: dict[str, object]) -> str:
    """Return the name of the host that a lease has."""
    (reservation,) = asked(pages, ADMIN, "GET", f"v1/leases/{lease['id']}")["lease"]["reservations"]
    known = reservation["allocations"][0]["resource"]["id"]
    hosts = asked(pages, ADMIN, "GET", "v1/resources/host")["resources"]
    return next(one["name"] for one in hosts if known in (one["id"], one["name"]))


def test_there_is_one_list_of_hosts_and_the_page_of_one_says_who_has_and_had_it(small, page_of):
    lease = booked(small, ALICE, "theirs", start="2031-03-03T08:00:00Z", end="2031-03-04T08:00:00Z")
    gone = booked(
        small, ALICE, "gone", start="2031-05-03T08:00:00Z", end="2031-05-04T08:00:00Z", resource_properties=""
    )
    host, other = host_of(small, lease), host_of(small, gone)
    asked(small, ADMIN, "DELETE", f"v1/leases/{gone['id']}")
    page = page_of(small + "resources", ADMIN)
    rows = page.locator("main tbody tr")
    expect(rows.first).to_contain_text("free")
    shown = rows.all_inner_texts()
    assert not any("{" in text for text in shown)
    page.goto(small + "hosts")
    expect(rows.first).to_contain_text("free")
    assert rows.all_inner_texts() == shown
    page.get_by_role("link", name=host, exact=True).click()
    expect(page.get_by_role("heading", name=host, exact=True)).to_be_visible()
    now = page.locator(".resource-leases").filter(has_text="Who has it, now and later")
    row = now.get_by_role("row", name=re.compile("theirs"))
    expect(row.get_by_role("link", name="physics")).to_be_visible()
    expect(row).to_contain_text("alice")
    expect(page.locator("main")).not_to_contain_text("{")
    assert serious(page) == []
    page.goto(small + "hosts")
    page.get_by_role("link", name=other, exact=True).click()
    past = page.locator(".resource-leases").filter(has_text="Who had it")
    expect(past.get_by_role("link", name="gone")).to_be_visible()


def test_a_host_that_is_disabled_until_a_date_is_not_drawn_as_free_after_it(small, page_of):
    host = asked(small, ADMIN, "GET", "v1/resources/host?limit=1")["resources"][0]
    hosts = asked(small, ADMIN, "GET", "v1/resources/host?with_count=true&limit=1")["count"]
    disabled = {"disabled": {"reason": "fan replaced", "until": "+P2D"}}
    asked(small, ADMIN, "PUT", f"v1/resources/host/{host['id']}", disabled)
    page = page_of(small + "calendar?by=none", ADMIN)
    later = drawn(page).locator(".block-out.block-later")
    expect(later).to_have_count(1)
    expect(later).to_have_attribute("aria-label", re.compile("^Takes new leases once enabled, from .* on$"))
    expect(page.get_by_role("list", name="What the blocks mean")).to_contain_text("takes new leases once enabled")
    assert serious(page) == []
    later.click()
    expect(page.get_by_role("dialog")).to_contain_text("No lease of this time can be booked before it is enabled")
    page.goto(small + "calendar?by=none&view=table")
    row = page.get_by_role("row", name=re.compile(f"^{host['name']} "))
    expect(row).to_contain_text("Out of use: disabled: fan replaced: ")
    expect(row).to_contain_text("Takes new leases once enabled: from ")
    # The overview counts no more of them as free at the end of what it shows.
    page.goto(small + "overview")
    free = f"{hosts - 1} of {hosts} hosts are free"
    expect(page.get_by_role("img", name=re.compile(f"^Now {free}"))).to_be_visible()


def sent(page, method, path):
    """Hold back requests to change something; return the list of those that were sent, and what lets them go on."""
    held = []

    def hold(route):
        if route.request.method == method:
            held.append(route)
        else:
            route.continue_()

    page.route(path, hold)

    def go_on():
        for route in held:
            route.continue_()
        page.unroute(path, hold)

    return held, go_on


def test_register_hosts_leads_to_what_registers_them_and_pressed_twice_sends_once(empty, page_of):
    page = page_of(empty + "resources", ADMIN)
    page.get_by_role("link", name="Register hosts").click()
    dialog = page.get_by_role("dialog", name="Register hosts")
    boxes = dialog.get_by_role("list").get_by_role("checkbox")
    boxes.first.check()
    hypervisors = boxes.count()
    held, go_on = sent(page, "POST", re.compile("/v1/resources/host$"))
    dialog.get_by_role("button", name="Register 1 host").dblclick()
    expect(dialog.get_by_role("button", name="Registering…")).to_be_visible()
    page.keyboard.press("Enter")
    # What is being registered is not offered once more: the dialog stays until it is done.
    page.keyboard.press("Escape")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_disabled()
    assert len(held) == 1
    go_on()
    expect(dialog).to_have_count(0)
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_text(f"{hypervisors - 1} hypervisors of the cloud are not registered")).to_be_visible()
    # Who closed it, and comes back to the page, is not asked again.
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(dialog).to_have_count(0)


def test_disable_and_remove_pressed_twice_send_once(small, page_of):
    name = asked(small, ADMIN, "GET", "v1/resources/host?limit=1")["resources"][0]["name"]
    page = page_of(small + "hosts", ADMIN)
    dialog = page.get_by_role("dialog")

    def press_twice(method, word):
        held, go_on = sent(page, method, re.compile("/v1/resources/host/"))
        dialog.get_by_role("button", name=word, exact=True).dblclick()
        expect(dialog.get_by_role("button", name=re.compile("…$"))).to_have_attribute("aria-busy", "true")
        page.keyboard.press("Enter")
        assert len(held) == 1
        go_on()
        expect(dialog).to_have_count(0)

    page.get_by_role("button", name=f"Disable {name}", exact=True).click()
    press_twice("PUT", "Disable")
    page.get_by_role("button", name=f"More for {name}", exact=True).click()
    page.get_by_role("button", name="Remove", exact=True).click()
    press_twice("DELETE", f"Remove {name}")
