# SPDX-License-Identifier: Apache-2.0
"""Guessing passwords by way of the pages is slow, and does not keep Keystone busy."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from blazar.api.web.answers import PageRefusal
from blazar.api.web.attempts import MOST_BUCKETS, Attempts, network
from tests.api.web.conftest import Browser
from tests.api.web.test_sessions import code


def tries(browser: Browser, count: int, user: str = "curie", address: str = "192.0.2.1") -> list[int]:
    """Return the statuses of so many wrong passwords."""
    asked = {"method": "password", "user": user, "domain": "Default", "password": "wrong"}
    headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": f"203.0.113.250, {address}"}
    return [
        browser.client.post("/ui/session", json=asked, base_url=browser.origin, headers=headers).status_code
        for _ in range(count)
    ]


@pytest.fixture
def browser(app) -> Browser:
    return Browser(app(proxies=1))


def test_a_user_has_five_attempts_a_minute_from_an_address(browser, keystone, time):
    assert tries(browser, 6) == [401] * 5 + [429]
    assert len(keystone.asked) == 5
    assert tries(browser, 1, user="CURIE") == [429]
    assert tries(browser, 1, user="noether") == [401]
    time.move(12)
    assert tries(browser, 2) == [401, 429]


def test_who_knows_a_name_does_not_keep_its_user_out_from_elsewhere(browser, time):
    for _ in range(6):
        tries(browser, 6, address="192.0.2.66")
        time.move(60)
    assert tries(browser, 6, address="192.0.2.66")[1:] == [429] * 5
    assert browser.sign_in(headers={"X-Forwarded-For": "192.0.2.77"}).status_code == 200


def test_a_user_has_thirty_attempts_a_minute_from_all_addresses_together(browser, time):
    found = [tries(browser, 1, address=f"192.0.2.{number}") for number in range(1, 33)]
    assert found == [[401]] * 30 + [[429]] * 2
    time.move(2)
    assert tries(browser, 2, address="198.51.100.1") == [401, 429]


@pytest.mark.slow
def test_what_is_remembered_is_bounded_however_many_try():
    attempts = Attempts(lambda: 0.0)
    for number in range(MOST_BUCKETS // 4):
        with (
            pytest.raises(LookupError),
            attempts.attempt(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", str(number)),
        ):
            raise LookupError
    assert len(attempts) == MOST_BUCKETS


def test_a_user_has_twenty_attempts_an_hour_from_an_address(browser, time):
    for _ in range(4):
        assert tries(browser, 5) == [401] * 5
        time.move(60)
    # Twenty an hour are one in three minutes, and four minutes have passed since the first.
    assert tries(browser, 1) == [401]
    refused = browser.sign_in(headers={"X-Forwarded-For": "203.0.113.250, 192.0.2.1"})
    assert code(refused) == (429, "session.too_many_attempts")
    assert refused.headers["Retry-After"] == "120"


def test_a_client_has_ten_attempts_a_minute_whomever_it_tries(browser, time):
    users = [f"user-{number}" for number in range(12)]
    assert [status for user in users for status in tries(browser, 1, user)] == [401] * 10 + [429] * 2
    assert tries(browser, 1, "curie", "192.0.2.2") == [401]
    time.move(6)
    assert tries(browser, 1, "user-11") == [401]


def test_a_network_of_ipv6_is_one_client():
    assert network("2001:db8::1") == network("2001:db8::ffff:1") != network("2001:db8:0:1::1")
    assert network("192.0.2.1") != network("192.0.2.2")


@pytest.mark.slow
def test_who_signs_in_rightly_is_not_limited(browser):
    assert [browser.sign_in().status_code for _ in range(15)] == [200] * 15


def test_passcodes_cannot_be_guessed_either(browser):
    receipt = browser.sign_in("bohr").json["receipt"]
    asked = {"method": "totp", "receipt": receipt, "passcode": "000000"}
    assert [browser.open("POST", "/ui/session", asked).status_code for _ in range(5)] == [401] * 4 + [429]


def test_at_most_four_sign_ins_are_at_keystone_at_once(app, keystone):
    served = app()
    keystone.hold = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(Browser(served).sign_in) for _ in range(4)]
        for _ in range(4):
            assert keystone.entered.acquire(timeout=10)
        refused = Browser(served).sign_in("noether")
        assert code(refused) == (429, "session.too_many_attempts")
        assert refused.headers["Retry-After"] == "1"
        keystone.hold.set()
        assert [one.result().status_code for one in running] == [200] * 4
    assert Browser(served).sign_in("noether").status_code == 200


def test_a_clock_that_stands_still_gives_nothing_back():
    attempts = Attempts(lambda: 5.0)

    def one() -> None:
        with attempts.attempt("192.0.2.1", None):
            raise LookupError

    for _ in range(10):
        with pytest.raises(LookupError):
            one()
    with pytest.raises(PageRefusal, match="try again in 6 seconds"):
        one()
