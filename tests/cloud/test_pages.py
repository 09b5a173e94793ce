# SPDX-License-Identifier: Apache-2.0
"""The web pages in a real browser, with sessions of the real Keystone and leases of the real Nova."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet
from keystoneauth1.exceptions import NotFound
from playwright.sync_api import Locator, Page, Response, expect

from blazar.api.web.cookies import NAME_ON_LOOPBACK, Sealer, Session
from blazar.clouds.ports.compute import Compute
from tests import openstack
from tests.cloud.deployment import FREEPOOL, Deployment, deployed
from tests.cloud.looks import pool
from tests.conftest import fresh_database
from tests.web.attacker import framed, other_program, post_a_form, read_by
from tests.web.conftest import Complaints

pytestmark = pytest.mark.usefixtures("nothing_left")

KEY = Fernet.generate_key().decode()
UI = f"""
[DEFAULT]
debug = true

[keystone_authtoken]
# The API would take a token for five minutes after Keystone has revoked it.
token_cache_time = -1

[ui]
session_keys = {KEY}
"""
HOSTS = {"compute-1", "compute-2", "compute-3"}
SLOWEST = 60_000
"""Milliseconds in which OpenStack does what a page asks for, on a machine that does much else."""
Login = dict[str, Any]
SignIn = Callable[..., Page]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A manager and two API processes that have the key of sessions in common, and log all that they can."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url, apis=2, more=UI) as running:
            yield running


@pytest.fixture(scope="module")
def curie(service: Deployment) -> Iterator[Login]:
    """A user who works in two projects; ``alt_demo`` is the first by name."""
    with openstack.new_user({"alt_demo": "member", "demo": "member"}) as login:
        service.knows("curie", login)
        yield login


@pytest.fixture
def refusals(complaints: Complaints) -> Iterator[set[int]]:
    """The statuses that a test expects: the browser reports every refused request, such as the first one of all.

    What a page still asks for while its project is switched is a conflict: it would be of the other project.
    """
    statuses = {401, 409}
    yield statuses
    complaints.expected |= {f"status of {status}" for status in statuses}


@pytest.fixture
def sign_in(service: Deployment, page_of: Callable[..., Page], refusals: set[int]) -> SignIn:
    """Return a function that opens a page and signs in there."""

    def signed_in(login: Login, path: str = "", *, project: str = "alt_demo", **options: Any) -> Page:
        page = page_of(f"{service.url}/ui/{path}", **options)
        enter(page, login)
        expect(account(page, project)).to_be_visible()
        return page

    return signed_in


def enter(page: Page, login: Login) -> None:
    """Fill in the form as a user does: by keyboard. The domain is proposed."""
    page.get_by_label("User", exact=True).fill(login["username"])
    expect(page.get_by_label("Domain")).to_have_value("Default")
    page.get_by_label("Password").fill(login["password"])
    page.keyboard.press("Enter")


def account(page: Page, project: str) -> Locator:
    return page.get_by_role("button", name=re.compile(f"^{project} "))


def switch(page: Page, before: str, after: str) -> None:
    account(page, before).click()
    page.get_by_role("button", name=after, exact=True).click()
    expect(account(page, after)).to_be_visible()


def sign_out(page: Page, project: str = "alt_demo") -> None:
    account(page, project).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()


def book(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    page.get_by_role("dialog", name="Book").get_by_label("Name").fill(name)
    page.keyboard.press("Enter")
    # Nova makes what the lease has before the answer comes.
    expect(page.get_by_role("heading", name=name)).to_be_visible(timeout=SLOWEST)


def look(page: Page) -> None:
    """Let a page read everything again, as it does when it is looked at."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def cookie_of(page: Page) -> str:
    (cookie,) = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (NAME_ON_LOOPBACK, True, "Strict")
    return str(cookie["value"])


def session_of(page: Page) -> Session:
    """Return what is in the cookie, which only the service can read."""
    found = Sealer((KEY,)).open(cookie_of(page), datetime.now(UTC))
    assert found is not None
    return found


def keep_until(page: Page, expires_at: datetime) -> None:
    """Put a session in the place of the one that the browser has, that ends at another time."""
    (cookie,) = page.context.cookies()
    value = Sealer((KEY,)).seal(replace(session_of(page), expires_at=expires_at))
    page.context.add_cookies([{**cookie, "value": value}])  # type: ignore[typeddict-item]


def tokens_of(session: Session) -> list[str]:
    return [token for token in (session.unscoped, session.scoped) if token is not None]


def is_valid(token: str) -> bool:
    """Tell whether Keystone takes a token."""
    try:
        openstack.identity("GET", "/auth/tokens", **{"X-Subject-Token": token})
    except NotFound:
        return False
    return True


def rows_of(page: Page) -> Locator:
    return page.locator("tbody tr")


def names_of(service: Deployment, login: str) -> list[str]:
    return [lease["name"] for lease in service.call(login, "GET", "/leases")["leases"]]


def test_a_user_books_sees_it_active_extends_and_ends_it(
    service: Deployment, curie: Login, sign_in: SignIn, compute: Compute
):
    page = sign_in(curie)
    expect(page.get_by_text("3 hosts match")).to_be_visible()
    book(page, "by the page")
    state = page.locator(".lease-title .state-word")
    expect(state).to_have_text("active", timeout=SLOWEST)
    (lease,) = service.call("curie", "GET", "/leases")["leases"]
    reservation = lease["reservations"][0]["id"]
    assert len(pool(compute, reservation)) == 1
    expect(page.get_by_text(re.compile(f"openstack server create .*--hint reservation={reservation}"))).to_be_visible()

    page.get_by_role("button", name="Extend", exact=True).click()
    dialog = page.get_by_role("dialog", name="Extend by the page")
    dialog.get_by_role("button", name="+ 2 h").click()
    expect(dialog.get_by_text("This fits: 2 h longer.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(dialog).to_have_count(0, timeout=SLOWEST)
    ends = datetime.fromisoformat(lease["end_date"]) + timedelta(hours=2)
    assert datetime.fromisoformat(service.lease(lease["id"], "curie")["end_date"]) == ends

    page.get_by_role("button", name="End now").click()
    page.get_by_role("dialog", name="End now: by the page").get_by_role("button", name="End now").click()
    expect(state).to_have_text("ended early", timeout=SLOWEST)
    assert pool(compute, FREEPOOL) == HOSTS
    assert compute.aggregate(reservation) is None


def test_a_wrong_password_is_said_in_a_sentence_and_the_name_stays(
    service: Deployment, curie: Login, page_of: Callable[..., Page], refusals: set[int]
):
    page = page_of(f"{service.url}/ui/")
    enter(page, {**curie, "password": "wrong"})
    expect(page.get_by_text("Keystone does not accept this; check what you entered, and try again.")).to_be_visible()
    expect(page.get_by_label("User", exact=True)).to_have_value(curie["username"])
    assert page.context.cookies() == []
    enter(page, curie)
    expect(account(page, "alt_demo")).to_be_visible()


@pytest.mark.nightly
def test_the_leases_of_a_project_are_seen_only_there(
    service: Deployment, curie: Login, sign_in: SignIn, refusals: set[int]
):
    here = service.create("curie", name="of alt_demo")
    service.create("demo", name="of demo")
    page = sign_in(curie, "leases?whose=project")
    expect(rows_of(page)).to_have_text([re.compile("of alt_demo")])
    page.goto(f"{service.url}/ui/lease?id={here['id']}")
    expect(page.get_by_role("heading", name="of alt_demo")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{service.url}/ui/leases?whose=project")
    refusals.add(404)
    switch(other, "alt_demo", "demo")
    expect(rows_of(other)).to_have_text([re.compile("of demo")])
    # The first tab follows before its next reading is due, and shows nothing any more of the project that it has left.
    expect(account(page, "demo")).to_be_visible()
    expect(page.get_by_role("heading", name="There is no such lease")).to_be_visible(timeout=8_000)


@pytest.mark.nightly
def test_what_is_typed_for_a_project_is_not_booked_in_another(
    service: Deployment, curie: Login, sign_in: SignIn, refusals: set[int]
):
    page = sign_in(curie)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    booking = page.get_by_role("dialog", name="Book")
    booking.get_by_label("Name").fill("for alt_demo")
    other = page.context.new_page()
    other.goto(f"{service.url}/ui/leases")
    switch(other, "alt_demo", "demo")
    expect(page.get_by_text("Another tab works in the project demo now.")).to_be_visible()
    booking.get_by_role("button", name="Book", exact=True).click()
    expect(booking.get_by_text("Another tab has switched to the project demo; nothing was done.")).to_be_visible()
    switch(other, "demo", "alt_demo")
    expect(page.get_by_text("Another tab works in")).to_have_count(0)
    booking.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="for alt_demo")).to_be_visible()
    assert (names_of(service, "curie"), names_of(service, "demo")) == (["for alt_demo"], [])


@pytest.mark.nightly
def test_an_application_credential_signs_in_for_its_one_project(
    service: Deployment, curie: Login, page_of: Callable[..., Page], refusals: set[int]
):
    session = service.access["curie"].session
    made = session.post(
        f"{curie['auth_url']}/users/{session.get_user_id()}/application_credentials",
        json={"application_credential": {"name": "for the pages"}},
    ).json()["application_credential"]
    page = page_of(f"{service.url}/ui/leases")
    for _ in range(2):
        page.get_by_role("button", name="Use an application credential").click()
        page.get_by_label("Id of the application credential").fill(made["id"])
        page.get_by_label("Secret").fill(made["secret"])
        page.keyboard.press("Enter")
        account(page, "alt_demo").click()
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        expect(page.get_by_text("Work in another project")).to_have_count(0)
        page.reload()
        tokens = tokens_of(session_of(page))
        # After a sign-out the same ways in are offered again.
        sign_out(page)
        assert not any(is_valid(token) for token in tokens)


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_who_signs_in_again_finds_all_that_was_typed(service: Deployment, curie: Login, sign_in: SignIn, how: str):
    page = sign_in(curie)
    page.reload()
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    booking = page.get_by_role("dialog", name="Book")
    booking.get_by_label("Name").fill("typed before")
    if how == "expired":
        keep_until(page, datetime.now(UTC))
    else:
        openstack.identity("DELETE", "/auth/tokens", **{"X-Subject-Token": str(session_of(page).unscoped)})
    # What the page reads by itself may have met it first; then the other dialog lies above already.
    booking.get_by_role("button", name="Book", exact=True).dispatch_event("click")
    again = page.get_by_role("dialog", name="Sign in again")
    expect(again).to_be_visible()
    expect(again.get_by_role("button", name="Use an application credential")).to_be_visible()
    expect(again.get_by_label("User")).to_have_value(curie["username"])
    again.get_by_label("Password").fill(curie["password"])
    page.keyboard.press("Enter")
    expect(again).to_have_count(0)
    expect(booking.get_by_label("Name")).to_have_value("typed before")
    booking.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="typed before")).to_be_visible()
    assert names_of(service, "curie") == ["typed before"]


@pytest.mark.nightly
def test_a_session_that_ends_soon_says_so(curie: Login, sign_in: SignIn):
    page = sign_in(curie)
    keep_until(page, datetime.now(UTC) + timedelta(minutes=4))
    page.reload()
    bar = page.get_by_text(re.compile("^Your session ends in"))
    expect(bar).to_be_visible()
    page.get_by_role("button", name="Sign in again").click()
    page.get_by_role("dialog", name="Sign in again").get_by_label("Password").fill(curie["password"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Sign in again")).to_have_count(0)
    expect(bar).to_have_count(0)


def test_a_sign_out_ends_the_tokens_at_keystone_and_the_session_in_all_tabs(
    service: Deployment, curie: Login, sign_in: SignIn
):
    page = sign_in(curie)
    tokens = tokens_of(session_of(page))
    switch(page, "alt_demo", "demo")
    tokens += tokens_of(session_of(page))
    kept = page.context.cookies()
    other = page.context.new_page()
    # Any process of the API opens the session.
    other.goto(f"http://127.0.0.1:{service.ports['api-1']}/ui/leases")
    expect(account(other, "demo")).to_be_visible()
    other.goto(f"{service.url}/ui/leases")
    expect(account(other, "demo")).to_be_visible()
    assert len(set(tokens)) == 3
    assert all(is_valid(token) for token in tokens)
    sign_out(page, "demo")
    assert page.context.cookies() == []
    assert not any(is_valid(token) for token in tokens)
    expect(other.get_by_label("Password")).to_be_visible()
    # A copy of the cookie is worth nothing any more, once all threads of Keystone know.
    page.context.add_cookies(kept)  # type: ignore[arg-type]
    assert page.request.get(f"{service.url}/v1/leases").status == 401
    openstack.eventually(lambda: page.request.get(f"{service.url}/ui/session").status, lambda status: status == 401)
    other.reload()
    expect(other.get_by_label("Password")).to_be_visible()
    assert page.context.cookies() == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["127.0.0.1", "evil.test"])
def test_pages_of_others_can_neither_act_nor_read_nor_frame(
    service: Deployment, curie: Login, sign_in: SignIn, complaints: Complaints, name: str
):
    page = sign_in(curie)
    with other_program() as url:
        attacker = page.context.new_page()
        attacker.goto(f"http://{name}:{urlsplit(url).port}/")
        assert read_by(attacker, service.url) == set()
        for path in ("/ui/", "/ui/leases", "/ui/session"):
            frame = page.context.new_page()
            frame.goto(f"http://{name}:{urlsplit(url).port}/")
            assert framed(frame, f"{service.url}{path}").startswith("chrome-error://")
        post_a_form(attacker, service.url)
    assert names_of(service, "curie") == []
    # A page of ours whose session is another's is refused, too.
    forged = page.evaluate(
        """async () => {
            const body = JSON.stringify({name: "forged"});
            const headers = {"Content-Type": "application/json", "X-CSRF-Token": "guessed"};
            return (await fetch("/v1/leases", {method: "POST", headers, body})).status;
        }"""
    )
    assert forged == 403
    complaints.expected.add("status of 403")
    look(page)
    expect(account(page, "alt_demo")).to_be_visible()


@pytest.mark.nightly
def test_no_token_and_no_password_is_in_a_script_an_address_or_a_log(
    service: Deployment, curie: Login, page_of: Callable[..., Page], refusals: set[int], compute: Compute
):
    page = page_of("about:blank")
    seen: list[str] = []
    told: list[str] = []
    answers: list[Response] = []
    page.on("request", lambda request: seen.append(f"{request.url} {request.headers}"))
    page.on("response", lambda response: answers.append(response))
    page.goto(f"{service.url}/ui/")
    enter(page, curie)
    expect(account(page, "alt_demo")).to_be_visible()
    tokens = tokens_of(session_of(page))
    secrets = [*tokens, cookie_of(page), curie["password"]]
    book(page, "secret")
    for path in ("leases", "calendar", "", "nothing"):
        page.wait_for_load_state("networkidle")
        # What a page has read can be looked at only while the page is there.
        told += [answer.text() for answer in answers if answer.request.resource_type == "fetch" and answer.ok]
        answers.clear()
        page.goto(f"{service.url}/ui/{path}")
        expect(page.locator("main")).to_be_visible()
        page.wait_for_load_state("networkidle")
        kept = "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href])"
        seen += [page.evaluate(kept), page.content()]
    switch(page, "alt_demo", "demo")
    secrets += [*tokens_of(session_of(page)), cookie_of(page)]
    sign_out(page, "demo")
    logs = [service.log(name) for name in service.processes]
    assert any("csrf_token" in text for text in told)
    for secret in secrets:
        assert [text[:300] for text in seen + told if secret in text] == []
        assert [text.count(secret) for text in logs] == [0, 0, 0]


@pytest.mark.nightly
def test_an_operator_sees_the_leases_of_all_with_their_owners(service: Deployment, curie: Login, sign_in: SignIn):
    service.create("curie", name="of curie")
    service.create("demo", name="of demo")
    member = sign_in(curie)
    expect(member.get_by_role("link", name="All leases")).to_have_count(0)
    page = sign_in(openstack.clouds()["admin"]["auth"], "all-leases", project="admin")
    for login in ("curie", "demo"):
        row = page.get_by_role("row", name=re.compile(f"of {login}"))
        session = service.access[login].session
        expect(row).to_contain_text(session.get_project_id())
        expect(row).to_contain_text(session.get_user_id())
    page.get_by_role("link", name="Hosts").click()
    expect(page.locator("tbody tr")).to_have_count(3)
