# SPDX-License-Identifier: Apache-2.0
"""The power of hosts on their page, for operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, serious, standalone
from tests.web.service import asked


def test_an_operator_lets_a_host_never_sleep_and_sleep_again(small, page_of):
    host, *_ = asked(small, ADMIN, "GET", "v1/power/hosts")["hosts"]
    page = page_of(small + "hosts", ADMIN)
    name = host["name"]
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(row).to_be_visible()
    # Nothing is planned there, so nothing is said of it.
    expect(page.get_by_role("heading", name="Power")).to_have_count(0)
    expect(row).not_to_contain_text("never sleeps")
    for button, policy in (("Never let it sleep", "keep"), ("Let it sleep", "auto")):
        page.get_by_role("button", name=f"More for {name}", exact=True).click()
        page.get_by_role("button", name=button, exact=True).click()
        expect(row).to_contain_text("never sleeps") if policy == "keep" else expect(row).not_to_contain_text(
            "never sleeps"
        )
        assert asked(small, ADMIN, "GET", f"v1/power/hosts/{host['id']}")["host"]["policy"] == policy
    assert serious(page) == []


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[str]:
    """The address of the pages of a service whose hosts and pools sleep; of one class the spare is fixed."""
    path = tmp_path / "sleep.conf"
    rules = "spares = cpu_vendor=none; MO-SU; 00:00-24:00: 1"
    path.write_text(f"[power]\nmode = on\nclass_by = cpu_vendor\n{rules}\n")
    yield from standalone(tmp_path, "--config-file", str(path))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_says_how_many_stay_awake_and_why_and_what_sleeps_of_the_pools(sleeping, width, page_of):
    given = {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 1000}
    asked(sleeping, ADMIN, "POST", "v1/resources/volume", given)
    (pool,) = asked(sleeping, ADMIN, "GET", "v1/power/pools")["pools"]
    switch = {"adapter": "simulated", "target": given["pool"]}
    asked(sleeping, ADMIN, "PUT", f"v1/power/pools/{pool['id']}", switch)
    page = page_of(sleeping + "hosts", ADMIN)
    page.set_viewport_size({"width": width, "height": 900})
    power = page.get_by_role("region", name="Power")
    expect(power).to_contain_text("1 free host stays awake for leases that start at once")
    expect(power).to_contain_text("set by the operators for cpu_vendor=none; MO-SU; 00:00-24:00")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(sleeping + "resources?kind=volume")
    expect(page.get_by_role("region", name="Power")).to_contain_text("pools have slept for 0 hours")
    expect(page.get_by_role("link", name=given["pool"], exact=True)).to_be_visible()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_operator_sets_what_switches_a_pool_and_what_was_wrong_is_said_beside_it(small, page_of, complaints):
    given = {"pool": "storage-1@ssd#pool1", "volume_type": "fast", "gigabytes": 1000}
    asked(small, ADMIN, "POST", "v1/resources/volume", given)
    page = page_of(small + "resources?kind=volume", ADMIN)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=given["pool"], exact=True))
    expect(row).to_be_visible()

    def choose(button):
        page.get_by_role("button", name=f"Power of {given['pool']}", exact=True).click()
        page.get_by_role("button", name=button, exact=True).click()

    choose("Power switch")
    dialog = page.get_by_role("dialog", name=f"Power switch of {given['pool']}")
    # No driver of storage switches a pool.
    expect(dialog.get_by_role("option")).to_have_text(["nothing", "a hook", "the simulated cloud"])
    complaints.expected.add("400")
    dialog.get_by_label("Switched by").select_option("a hook")
    dialog.get_by_label("Target").fill("https://power.example/hook")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("a simulated cloud does not have")
    assert serious(page) == []
    dialog.get_by_label("Switched by").select_option("the simulated cloud")
    dialog.get_by_label("Target").fill(given["pool"])
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    (pool,) = asked(small, ADMIN, "GET", "v1/power/pools")["pools"]
    assert (pool["adapter"], pool["target"]) == ("simulated", given["pool"])
    choose("Never let it sleep")
    expect(row).to_contain_text("never sleeps")
    assert serious(page) == []
