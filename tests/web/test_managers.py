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


def test_on_a_phone_each_cell_says_what_it_is(small, page_of):
    page = page_of(small + "managers", ADMIN, viewport={"width": 390, "height": 844})
    expect(page.get_by_text("running")).to_be_visible()
    heads = "cells => cells.map((one) => getComputedStyle(one, '::before').content)"
    assert page.locator("td[data-head]").evaluate_all(heads) == ['"Seen "', '"Works on "', '"Trouble "']


def test_nobody_else_has_the_page(small, page_of):
    page = page_of(small + "leases", ALICE)
    expect(page.get_by_role("navigation").first).to_be_visible()
    expect(page.get_by_role("link", name="Managers")).to_have_count(0)
