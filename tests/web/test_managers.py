# SPDX-License-Identifier: Apache-2.0
"""The page of running managers, for operators."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious
from tests.web.service import asked


def test_an_operator_sees_the_manager_that_answers(small, page_of):
    page = page_of(small + "managers", ADMIN)
    (manager,) = asked(small, ADMIN, "GET", "v1/managers")["managers"]
    row = page.get_by_role("row", name=re.compile(re.escape(manager["host"])))
    expect(row).to_contain_text(manager["id"])
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("none")
    assert serious(page) == []


def test_nobody_else_has_the_page(small, page_of):
    page = page_of(small + "leases", ALICE)
    expect(page.get_by_role("navigation").first).to_be_visible()
    expect(page.get_by_role("link", name="Managers")).to_have_count(0)
