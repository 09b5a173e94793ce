# SPDX-License-Identifier: Apache-2.0
"""Hosts by Redfish: what is asked of a BMC, and what comes of those that refuse, lie or do not answer."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from datetime import timedelta

import pytest

from blazar.clouds.outgoing.addresses import Allowed
from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef
from blazar.clouds.redfish.options import CredentialsSource
from blazar.context import scope
from blazar.model.base.errors import ClaimLost, CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from tests.clouds.bmcs import LOOPBACK, PASSWORD, RESET, SYSTEM, FakeBmc, redfish, serving

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN


@pytest.fixture
def bmc():
    with serving() as bmc:
        yield bmc


def state_of(bmc, **more):
    return redfish(**more).power_states([bmc.ref()])["node-1"]


def watts_of(bmc):
    return redfish().power_watts([bmc.ref()])


@pytest.mark.parametrize(("said", "state"), [("On", ON), ("Off", OFF), ("PoweringOff", UNKNOWN), (None, UNKNOWN)])
def test_only_what_says_off_is_off(bmc, said, state):
    bmc.power = said
    found = state_of(bmc)
    assert found.state is state
    assert (found.reason == "") == (state is not UNKNOWN)


@pytest.mark.parametrize(
    ("power", "to", "soft", "reset"),
    [
        ("Off", ON, False, ["On"]),
        ("On", OFF, True, ["GracefulShutdown"]),
        ("On", OFF, False, ["ForceOff"]),
        ("On", ON, False, []),
        ("Off", OFF, True, []),
    ],
)
def test_a_system_is_reset_by_what_is_wanted_and_left_alone_if_it_is_so(bmc, power, to, soft, reset):
    bmc.power = power
    redfish().begin_switch(bmc.ref(), to, soft=soft)
    assert bmc.resets() == reset
    assert [(method, path) for method, path, _ in bmc.heard][0] == ("GET", SYSTEM)


def test_another_kind_of_reset_is_taken_if_the_system_has_not_the_usual_one(bmc):
    bmc.power, bmc.kinds = "Off", ["ForceOn", "ForceOff"]
    redfish().begin_switch(bmc.ref(), ON, soft=False)
    assert bmc.resets() == ["ForceOn"]


def test_a_system_that_cannot_shut_down_softly_waits_for_the_hard_switch(bmc):
    bmc.kinds = ["On", "ForceOff"]
    redfish().begin_switch(bmc.ref(), OFF, soft=True)
    assert (bmc.resets(), bmc.power) == ([], "On")
    redfish().begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.resets() == ["ForceOff"]


def test_a_system_without_a_way_to_be_switched_is_refused(bmc):
    bmc.kinds = ["PushPowerButton"]
    with pytest.raises(CloudRefused, match="offers no reset ForceOff, only PushPowerButton"):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)
    bmc.answers["GET", SYSTEM] = (200, {"PowerState": "On"})
    with pytest.raises(CloudRefused, match="offers no reset"):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)


@pytest.mark.parametrize(
    "target", ["http://evil.example/x", "//evil.example/x", "x", "/a b", "/a\r\nX: y", "\\x", "/é"]
)
def test_a_reset_that_leads_elsewhere_is_not_called(bmc, target):
    bmc.target = target
    with pytest.raises(CloudRefused, match="its BMC names a place"):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)
    assert [method for method, _, _ in bmc.heard] == ["GET"]


def test_a_switch_is_sent_once_even_if_its_answer_is_lost(bmc):
    bmc.answers["POST", RESET] = (503, {"error": {"message": "busy\nnow"}})
    with pytest.raises(CloudUnavailable, match="its BMC answered 503: busy now"):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.resets() == ["ForceOff"]


def test_nothing_is_sent_when_the_claim_has_ended(bmc):
    class Ended:
        longest_call = 10.0

        def remaining(self):
            return 5.0

    with scope(fence=Ended()), pytest.raises(ClaimLost):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.heard == []


def test_nothing_is_sent_when_the_claim_ends_while_the_state_is_read(bmc):
    class Ending:
        longest_call = 10.0
        left = iter((20.0, 5.0))

        def remaining(self):
            return next(self.left)

    with scope(fence=Ending()), pytest.raises(ClaimLost):
        redfish().begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.resets() == []


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, {}, "does not accept the name and password of \\[redfish\\]"),
        (
            404,
            {"error": {"@Message.ExtendedInfo": [{"Message": "no system"}]}},
            "refuses the request \\(404\\): no sys",
        ),
        (307, {}, "a redirect, which is never followed"),
        (500, b"<html>", "its BMC answered 500$"),
        (200, b"[1]", "not a JSON object"),
        (200, b"{", "not a JSON object"),
        (200, b'{"a": "' + b"x" * 300_000 + b'"}', "not a JSON object, or too long"),
    ],
)
def test_a_bad_answer_is_unknown_and_says_why_without_the_password(bmc, status, body, sentence):
    bmc.answers["GET", SYSTEM] = (status, body)
    found = state_of(bmc)
    assert found.state is UNKNOWN
    assert re.search(sentence, found.reason), found.reason
    assert PASSWORD not in found.reason


def test_a_bmc_that_does_not_answer_costs_its_own_host_only_and_is_left_alone_for_a_minute():
    now = [1000.0]
    with serving() as good, serving(FakeBmc(slow=0.6)) as silent, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = PowerAddress(PowerAdapter.REDFISH, f"http://127.0.0.1:{unused.getsockname()[1]}{SYSTEM}")
        refs = [silent.ref("silent"), good.ref("good"), PowerRef("gone", "gone", gone)]
        adapter = redfish(timeout=0.15, clock=lambda: now[0])
        begin = time.monotonic()
        found = adapter.power_states(refs)
        assert time.monotonic() - begin < 0.5
        assert found == {
            "silent": PowerReading(UNKNOWN, "its BMC did not answer in time"),
            "good": PowerReading(ON),
            "gone": PowerReading(UNKNOWN, "its BMC cannot be reached"),
        }
        assert adapter.power_states(refs) == found
        assert len(silent.heard) == 1
        silent.slow = 0.0
        now[0] += 61
        assert adapter.power_states(refs)["silent"].state is ON


def test_one_that_was_silent_is_switched_all_the_same(bmc):
    adapter = redfish(timeout=0.2)
    bmc.slow = 0.4
    assert adapter.power_states([bmc.ref()])["node-1"].state is UNKNOWN
    bmc.slow = 0.0
    adapter.begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.resets() == ["ForceOff"]


def test_the_deadline_of_a_request_is_kept_and_makes_nobody_silent(bmc):
    adapter = redfish()
    with scope(limit=timedelta(0)):
        assert adapter.power_states([bmc.ref()])["node-1"].state is UNKNOWN
    assert adapter.power_states([bmc.ref()])["node-1"].state is ON


def test_a_session_is_begun_once_and_again_when_it_is_over(bmc):
    adapter = redfish(sessions=True)
    for _ in range(3):
        assert adapter.power_states([bmc.ref()])["node-1"].state is ON
    assert [path for _, path, _ in bmc.heard].count("/redfish/v1/SessionService/Sessions") == 1
    bmc.sessions.clear()
    adapter.begin_switch(bmc.ref(), OFF, soft=False)
    assert bmc.resets() == ["ForceOff"]
    assert [path for _, path, _ in bmc.heard].count("/redfish/v1/SessionService/Sessions") == 2


def test_a_bmc_that_gives_no_token_is_not_asked_further(bmc):
    bmc.answers["POST", "/redfish/v1/SessionService/Sessions"] = (401, {})
    assert "name and password" in state_of(bmc, sessions=True).reason
    assert [path for _, path, _ in bmc.heard] == ["/redfish/v1/SessionService/Sessions"]


@pytest.mark.parametrize("place", [("GET", SYSTEM), ("POST", "/redfish/v1/SessionService/Sessions")])
def test_a_password_that_a_bmc_repeats_is_not_told(bmc, place):
    said = f"The value {PASSWORD} for the property Password is not in the list"
    bmc.answers[place] = (400, {"error": {"@Message.ExtendedInfo": [{"Message": said}]}})
    reason = state_of(bmc, sessions=place[0] == "POST").reason
    assert reason.endswith("(400): The value *** for the property Password is not in the list")


@pytest.mark.parametrize("old_meter", [False, True])
def test_watts_are_those_of_the_chassis_in_the_new_form_or_the_old(bmc, old_meter):
    bmc.watts, bmc.old_meter = 183.5, old_meter
    assert watts_of(bmc) == {"node-1": 183.5}


@pytest.mark.parametrize("watts", [None, "183", True, -1, float("nan"), float("inf"), 10**400])
def test_what_is_no_number_of_watts_is_none(bmc, watts):
    bmc.watts = watts
    assert watts_of(bmc) == {}


def test_the_meter_of_a_system_is_looked_for_once(bmc):
    adapter = redfish()
    bmc.watts = 1
    for _ in range(3):
        adapter.power_watts([bmc.ref()])
    assert len(bmc.heard) == 2 + 3


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("https://10.0.0.1/", "target is not the URL of a system"),
        ("https://10.0.0.1/redfish/v1/Systems", "target is not the URL of a system"),
        ("https://10.0.0.1/redfish/v1/Systems/1/Actions", "target is not the URL of a system"),
        ("https://10.0.0.1/redfish/v1/Systems/1?x=1", "target is not the URL of a system"),
        ("https://admin:secret@10.0.0.1/redfish/v1/Systems/1", "leave out the user name and password; a URL is stored"),
        ("http://10.0.0.1/redfish/v1/Systems/1", r"\[redfish\] allow_http"),
        ("https://169.254.169.254/redfish/v1/Systems/1", "metadata service"),
        ("https://127.0.0.1/redfish/v1/Systems/1", "an address of this machine"),
    ],
)
def test_an_address_is_checked_before_it_is_kept(target, sentence):
    adapter = redfish(allowed=Allowed.of((), ("10.0.0.0/8",), http=False, named=LOOPBACK.named))
    with pytest.raises(InvalidInput, match=sentence) as refused:
        adapter.check_address(PowerAddress(PowerAdapter.REDFISH, target))
    assert "secret@" not in refused.value.message
    adapter.check_address(PowerAddress(PowerAdapter.REDFISH, "https://10.0.0.1/redfish/v1/Systems/437XR1138R2"))


def test_nobody_chooses_who_is_sent_the_password_where_no_network_is_allowed():
    with serving() as bmc:
        adapter = redfish(allowed=Allowed.of((), (), http=True, named=LOOPBACK.named))
        with pytest.raises(InvalidInput, match=r"\[redfish\] allowed_networks") as refused:
            adapter.check_address(PowerAddress(PowerAdapter.REDFISH, "https://192.0.2.1/redfish/v1/Systems/1"))
        assert refused.value.at.name == "/target"
        assert "allowed_networks" in adapter.power_states([bmc.ref("node-1")])["node-1"].reason
        assert not bmc.heard


def test_credentials_are_those_of_the_file_which_is_read_again(tmp_path):
    path = tmp_path / "bmcs.json"
    path.write_text(json.dumps({"node-1": {"username": "a", "password": "secret-1"}}))
    source = CredentialsSource(None, path)
    assert (source.find("node-1").username, source.find("node-1").password) == ("a", "secret-1")
    assert "secret-1" not in repr(source.find("node-1"))
    with pytest.raises(CloudRefused, match="has no name and password"):
        source.find("node-2")
    path.write_text(json.dumps({"node-2": {"username": "b", "password": "secret-22"}}))
    os.utime(path, ns=(1, 1))
    assert source.find("node-2").username == "b"


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a": 1}', '{"a": {"username": "x"}}', '{"a": {"username": "a:b", "password": "q"}}']
)
def test_a_file_of_credentials_that_cannot_be_is_told_without_what_is_in_it(tmp_path, text):
    path = tmp_path / "bmcs.json"
    path.write_text(text)
    with pytest.raises(CloudRefused, match="credentials_file is not what it should be"):
        CredentialsSource(None, path).find("a")
