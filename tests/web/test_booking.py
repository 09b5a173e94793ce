# SPDX-License-Identifier: Apache-2.0
"""What is made of several parts, from a question to a lease in use: servers with what their lease has, and stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import ADMIN, ALICE, serious, standalone
from tests.web.service import asked, leases_of

PUBLIC = "5e1f7c1e-0b5a-4c7e-9d57-2f1d6c0a9e01"
RESOURCES = [
    ("network", {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 100}),
    ("volume", {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 2000}),
    ("floatingip", {"floating_network_id": PUBLIC, "floating_ip_address": "203.0.113.10"}),
]
TEMPLATE = """heat_template_version: 2018-08-31
parameters:
  image: {type: string}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.0.0/24}}
  web:
    type: OS::Nova::Server
    properties: {flavor: m1.small, image: {get_param: image}, networks: [{network: {get_resource: net}}]}
    depends_on: subnet
  data: {type: OS::Cinder::Volume, properties: {size: 20, volume_type: fast}}
"""


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the pages of a service that has a segment, a pool and an address besides its hosts."""
    for pages in standalone(tmp_path_factory.mktemp("stocked")):
        for kind, resource in RESOURCES:
            asked(pages, ADMIN, "POST", f"v1/resources/{kind}", resource)
        yield pages


def is_booked(page: Page, name: str) -> None:
    """Book the first opening; wait until the lease is in use."""
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.locator(".lease-title .state-word")).to_have_text("active", timeout=60_000)


def is_ended(page: Page, pages: str) -> None:
    """End the lease of the page."""
    page.get_by_role("button", name="End now").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^End ")).click()
    expect(page.locator(".lease-title .state-word")).to_have_text(re.compile("deleted|ended"), timeout=60_000)
    assert leases_of(pages, ALICE) == []


def term(card: Locator, name: str) -> Locator:
    """Return what stands beside a term."""
    return card.locator(".reservation-fields > div").filter(has=card.page.locator("dt", has_text=name)).locator("dd")


def test_servers_get_the_network_the_volume_and_the_address_of_their_lease(stocked, page_of, complaints):
    # While it is typed, a network has no addresses yet.
    complaints.expected.add("400 (BAD REQUEST)")
    page = page_of(stocked + "?type=virtual:server", ALICE)
    page.get_by_label("Image", exact=True).fill("cirros")
    page.get_by_label("Flavor (optional)").fill("2")
    for number, kind in enumerate(("network", "virtual:volume", "virtual:floatingip"), start=1):
        page.get_by_role("button", name="Together with something else").click()
        page.get_by_label("Of what").nth(number).select_option(kind)
    page.get_by_label("Name of the network").fill("lab")
    page.get_by_label("Addresses", exact=True).fill("10.0.0.0/24")
    page.get_by_label("Size of each, GiB").fill("10")
    page.get_by_label("Of which network").select_option(index=1)
    page.get_by_text("More about it").first.click()
    page.get_by_label("Networks", exact=True).select_option("these:")
    page.get_by_label("Networks, number 1", exact=True).select_option("network lab (reservation 2)")
    # Volumes are counted in what they take of a pool.
    expect(page.locator(".strip", has_text="2000 GiB in volume pools that match, 2000 free now")).to_be_visible()
    page.get_by_role("button", name="Add to volumes").click()
    page.get_by_label("Volumes, number 1", exact=True).select_option("1 volume of 10 GiB (reservation 3)")
    page.get_by_label("Floating IPs (optional)").select_option("1 floating IP (reservation 4)")
    assert serious(page) == []
    is_booked(page, "mixed")
    server = page.locator(".reservation").filter(has_text="1 server of 1 vCPU")
    for name, other in (
        ("Networks", "network lab"),
        ("Volumes", "1 volume of 10 GiB"),
        ("Floating IPs", "1 floating IP"),
    ):
        expect(term(server, name).get_by_role("button")).to_have_text(other)
    expect(server.get_by_text(re.compile("openstack server show "))).to_be_visible()
    network = page.locator(".reservation").filter(has=page.get_by_role("heading", name="Network lab"))
    expect(term(network, "Subnet").first).to_have_text("Addresses: 10.0.0.0/24")
    # The server has the volume and the address already.
    expect(page.get_by_text("openstack server add")).to_have_count(0)
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog", name="Change mixed")
    dialog.get_by_label("Servers", exact=True).fill("2")
    expect(dialog.get_by_text("While it is in use, this stays as it is:").first).to_be_visible()
    expect(dialog.get_by_label("Image", exact=True)).to_have_count(0)
    expect(dialog.locator("dt", has_text="Image")).to_be_visible()
    expect(dialog.get_by_text("This fits.")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("heading", name="2 servers of 1 vCPU, 2 GiB")).to_be_visible()
    is_ended(page, stocked)


def test_a_stack_shows_what_it_is_made_of(stocked, page_of, complaints, tmp_path):
    # Without its parameter Heat refuses the template.
    complaints.expected.add("400 (BAD REQUEST)")
    page = page_of(stocked + "?type=virtual:stack", ALICE)
    expect(page.get_by_role("heading", name="Still needed: Template")).to_be_visible()
    file = tmp_path / "course.yaml"
    file.write_text(TEMPLATE, encoding="utf-8")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="From a file").first.click()
    chooser.value.set_files(file)
    expect(page.get_by_label("Template", exact=True)).to_have_value(TEMPLATE)
    page.get_by_label("Parameters (optional)").fill("image: cirros")
    page.get_by_text("More about it").click()
    page.get_by_label("Name (optional)").fill("course")
    expect(page.get_by_text("You get stack course · its 2 servers, volumes and addresses").first).to_be_visible()
    # It is not made of whole hosts, so these are not counted.
    expect(page.locator(".strip")).to_have_count(0)
    assert serious(page) == []
    page.get_by_label("Template", exact=True).fill(TEMPLATE.replace("size: 20", "size: 3000"))
    expect(page.get_by_text("A part of the stack does not fit: 0 of 1 are free now,")).to_be_visible()
    expect(page.get_by_text("volume pool for your project")).to_be_visible()
    page.get_by_label("Template", exact=True).fill(TEMPLATE)
    is_booked(page, "lesson")
    parts = page.get_by_role("list", name="Made of")
    expect(parts).to_contain_text("1 server of 1 vCPU")
    expect(parts).to_contain_text("1 volume of 20 GiB")
    expect(page.get_by_text(re.compile("openstack stack show "))).to_be_visible()
    page.get_by_text(re.compile(r"^\d+ lines$")).click()
    expect(page.locator(".document-text")).to_contain_text("depends_on: subnet")
    assert serious(page) == []
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("dialog", name="Change lesson")).to_contain_text(
        "Only the dates of this stack can be changed; this stays as it is:"
    )
    page.keyboard.press("Escape")
    is_ended(page, stocked)
