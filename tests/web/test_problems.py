# SPDX-License-Identifier: Apache-2.0
"""Operators see what is in trouble, and what would be done, before they do it; members do not have the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import ADMIN, ALICE, serious, sign_in
from tests.web.service import asked


def test_problems_are_counted_listed_and_looked_at_before_they_are_acted_on(shared, page_of):
    found = list(asked(shared, ADMIN, "GET", "v1/problems?limit=200")["problems"])
    page = page_of(f"{shared}problems", ADMIN)
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=re.compile("^Problems"))
    expect(link).to_be_visible()
    if not found:
        expect(page.get_by_text("There are no problems")).to_be_visible()
        return
    expect(link).to_have_text(re.compile(rf"Problems\s*{len(found)}$"))
    for problem in found:
        expect(page.get_by_text(str(problem["summary"])).first).to_be_visible()
    assert serious(page) == []


def test_members_do_not_have_the_page(shared, page_of):
    page = page_of(f"{shared}problems", ALICE)
    expect(page.get_by_text("This page is for operators")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^Problems"))).to_have_count(0)


PROBLEM = {
    "id": "event:4d1f0c2b-8a7e-4f3d-9c6b-5a4e3d2c1b0a",
    "kind": "event",
    "since": "2030-05-01T08:00:00Z",
    "summary": "start_lease of lease gan-training has failed 5 times",
    "explanation": [
        "The last reason is: host cn12 runs 1 server that belongs to no reservation.",
        "It is tried again at 2030-05-01 08:05:20.",
    ],
    "actions": ["retry", "give_up"],
    "lease_id": None,
    "region": "",
    "resource_id": None,
}
FAILED = {
    **PROBLEM,
    "id": "resource:9f2c01aa",
    "kind": "resource",
    "summary": "host node-1 has failed",
    "explanation": ["The monitor says: it is down."],
    "actions": ["recheck"],
    "resource_id": "host/1",
}


@pytest.mark.parametrize("name", ["problems", "managers"])
def test_while_the_service_does_not_answer_operators_are_told_where_else_to_look(shared, page_of, complaints, name):
    complaints.expected.add("503")
    page = page_of(f"{shared}overview", ADMIN)
    sentence = "No blazar-manager answered in time; please try again."
    error = {"code": "reservation.unavailable", "status": 503, "title": "Service Unavailable", "detail": sentence}
    page.route(re.compile(rf"/v1/{name}(\?|$)"), lambda route: route.fulfill(status=503, json={"errors": [error]}))
    page.goto(f"{shared}{name}")
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(page.get_by_text(f"blazar-manage {name} list")).to_be_visible()
    expect(page.get_by_text("blazar-status upgrade check")).to_be_visible()
    assert serious(page) == []


def test_operators_whose_pages_cannot_begin_are_told_so_too_and_others_are_not(shared, page_of, complaints):
    complaints.expected.add("503")
    error = {"code": "reservation.identity_unavailable", "status": 503, "title": "", "detail": "Keystone is away"}
    for who, times in ((ADMIN, 1), (ALICE, 0)):
        page = page_of(f"{shared}overview", who)
        page.route("**/v1/info", lambda route: route.fulfill(status=503, json={"errors": [error]}))
        page.goto(f"{shared}problems")
        expect(page.get_by_text("Keystone is away")).to_be_visible()
        expect(page.get_by_text("blazar-status upgrade check")).to_have_count(times)
        assert serious(page) == []


def test_pages_stand_while_no_manager_answers_say_so_and_go_on_when_one_does(shared, page_of, complaints):
    complaints.expected.add("503")
    page = page_of("about:blank")
    sign_in(page, ADMIN)
    whole = asked(shared, ADMIN, "GET", "v1/info")["info"]
    notice = "No blazar-manager answers at present: nothing can be shown or changed until one does"
    bare = {name: whole[name] for name in ("now", "user_id", "project_id", "allowed", "kinds")}
    bare |= {"bounds": {"page": 1000}, "notice": notice}
    error = {
        "code": "reservation.manager_unavailable",
        "status": 503,
        "title": "",
        "detail": "no blazar-manager answered",
    }
    # What is answered here says no time, by which a page would put a clock right that begins in 1970.
    page.clock.install(time=whole["now"])
    page.route(re.compile(r"/v1/(?!info)"), lambda route: route.fulfill(status=503, json={"errors": [error]}))
    page.route("**/v1/info", lambda route: route.fulfill(json={"info": bare}))
    page.goto(f"{shared}problems")
    expect(page.get_by_text(notice)).to_be_visible()
    expect(page.get_by_role("link", name="Managers")).to_be_visible()
    expect(page.get_by_text("no blazar-manager answered").first).to_be_visible()
    assert serious(page) == []
    for name in ("", "calendar", "leases", "notifications", "maintenance"):
        page.goto(f"{shared}{name}")
        expect(page.get_by_text(notice)).to_be_visible()
    page.unroute_all()
    page.clock.fast_forward(16_000)
    expect(page.get_by_text(notice)).to_have_count(0)


def test_a_failed_host_leads_to_its_page_and_back_to_what_can_be_done(shared, page_of):
    page = page_of(f"{shared}overview", ADMIN)
    page.route(re.compile(r"/v1/problems\?"), lambda route: route.fulfill(json={"problems": [FAILED], "links": []}))
    page.goto(f"{shared}problems")
    expect(page.get_by_role("link", name="host node-1 has failed")).to_have_attribute(
        "href", re.compile(r"resource\?kind=host&id=1$")
    )

    def fail_first(route) -> None:
        answer = route.fetch()
        body = answer.json()
        body["resources"][0]["failure"] = {"reason": "it is down", "since": "2030-05-01T08:00:00Z"}
        route.fulfill(response=answer, json=body)

    page.route(re.compile(r"/v1/resources/host\?"), fail_first)
    page.goto(f"{shared}hosts")
    expect(page.get_by_role("link", name="What to do")).to_have_attribute("href", re.compile("problems$"))
    assert serious(page) == []


LOST = {
    **PROBLEM,
    "id": "manager:ctl1:4711:9f2c01aa",
    "kind": "manager",
    "summary": "The manager on ctl1 is not seen any more",
    "explanation": ["It has crashed, hangs, or does not reach the database: its log says why; start it again."],
    "actions": [],
}
REFUSED = {
    **PROBLEM,
    "id": "delivery:4d1f0c2b-8a7e-4f3d-9c6b-5a4e3d2c1b0a:17",
    "kind": "delivery",
    "summary": "The receiver of subscription 4d1f0c2b-8a7e-4f3d-9c6b-5a4e3d2c1b0a has refused 2 messages",
    "explanation": ["The receiver says: it does not like it."],
    "actions": ["retry", "drop"],
}


def test_a_lost_manager_leads_to_the_managers_and_refused_messages_can_be_forgotten(shared, page_of):
    page = page_of(f"{shared}overview", ADMIN)
    found = {"problems": [LOST, REFUSED], "count": 2, "links": []}
    page.route("**/v1/problems?*", lambda route: route.fulfill(json=found))
    repair = {"problem_id": REFUSED["id"], "action": "drop", "dry_run": True, "said": ["2 would be forgotten."]}
    page.route("**/v1/problems/*/drop", lambda route: route.fulfill(json={"repair": repair}))
    page.goto(f"{shared}problems")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("dialog").get_by_text("2 would be forgotten.")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("main").get_by_role("link", name=str(LOST["summary"])).click()
    expect(page.get_by_role("heading", name="Managers")).to_be_visible()


def test_what_an_action_would_do_is_said_before_a_reason_is_given_and_it_is_done(shared, page_of):
    page = page_of(f"{shared}overview", ADMIN)
    sent: list[dict[str, object]] = []

    def act(route) -> None:
        sent.append(route.request.post_data_json)
        said = ["It would be tried again." if sent[-1]["dry_run"] else "It is tried again now."]
        repair = {"problem_id": PROBLEM["id"], "action": "retry", "dry_run": sent[-1]["dry_run"], "said": said}
        route.fulfill(json={"repair": repair})

    page.route("**/v1/problems?*", lambda route: route.fulfill(json={"problems": [PROBLEM], "count": 1, "links": []}))
    page.route("**/v1/problems/*/retry", act)
    page.goto(f"{shared}problems")
    expect(page.get_by_role("link", name=re.compile("^Problems"))).to_have_text(re.compile(r"Problems\s*1$"))
    # Its times are those of the page's zone, as all others.
    expect(page.get_by_text(re.compile("It is tried again at .* 10:05"))).to_be_visible()
    page.get_by_role("main").get_by_role("button", name=f"Try again: {PROBLEM['summary']}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("It would be tried again.")).to_be_visible()
    done = dialog.get_by_role("button", name="Try again")
    expect(done).to_be_disabled()
    dialog.get_by_label("Reason").fill("ticket 4711")
    assert serious(page) == []
    done.click()
    expect(page.get_by_text("It is tried again now.").last).to_be_visible()
    assert sent[-1] == {"reason": "ticket 4711", "dry_run": False}
