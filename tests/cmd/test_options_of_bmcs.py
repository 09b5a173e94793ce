# SPDX-License-Identifier: Apache-2.0
"""Which BMCs are asked, how long and by which name is what ``[redfish]`` of ``blazar.conf`` says."""

from __future__ import annotations

import json
import time

import pytest

from blazar.clouds.ports.power import MachinePower
from blazar.clouds.redfish.power import RedfishPower
from blazar.cmd import assemble
from blazar.cmd.config import ConfigurationError
from blazar.model.base.errors import InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from tests.certificates import make_certificate
from tests.clouds.bmcs import PASSWORD, FakeBmc, serving

LOOPBACK = ("[redfish]", "allowed_networks = 127.0.0.0/8")
LOGIN = ("username = blazar", f"password = {PASSWORD}")


def state_of(conf, bmc, host="node-1"):
    return RedfishPower.configured(conf).power_states([bmc.ref(host)])[host]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("allowed", "others", "url"),
    [
        ("allowed_networks = 192.0.2.0/24", "allowed_networks = 198.51.100.0/24", "https://192.0.2.7"),
        ("allow_http = true", "allow_http = false", "http://192.0.2.7"),
    ],
)
def test_a_bmc_is_asked_where_the_file_allows_it(load, allowed, others, url):
    address = PowerAddress(PowerAdapter.REDFISH, f"{url}/redfish/v1/Systems/1")
    networks = () if "networks" in allowed else ("allowed_networks = 192.0.2.0/24",)
    RedfishPower.configured(load("[redfish]", allowed, *networks)).check_address(address)
    with pytest.raises(InvalidInput, match=r"\[redfish\]"):
        RedfishPower.configured(load("[redfish]", others, *networks)).check_address(address)


def test_a_bmc_is_logged_in_to_as_the_file_says(load, tmp_path):
    file = tmp_path / "bmcs.json"
    file.write_text(json.dumps({"node-1": {"username": "blazar", "password": PASSWORD}}))
    http = (*LOOPBACK, "allow_http = true")
    with serving() as bmc:
        assert state_of(load(*http, *LOGIN), bmc).state is MachinePower.ON
        assert "name and password" in state_of(load(*http, "username = blazar", "password = wrong"), bmc).reason
        by_file = load(*http, f"credentials_file = {file}")
        assert state_of(by_file, bmc).state is MachinePower.ON
        assert "has no name and password" in state_of(by_file, bmc, "node-2").reason
        assert not bmc.sessions
        assert state_of(load(*http, *LOGIN, "sessions = true"), bmc).state is MachinePower.ON
        assert len(bmc.sessions) == 1


def test_any_certificate_of_a_bmc_is_accepted_if_the_file_says_so(load, tmp_path):
    with serving(certificate=make_certificate(tmp_path, ("192.0.2.1",))) as bmc:
        assert "certificate" in state_of(load(*LOOPBACK, *LOGIN), bmc).reason
        assert bmc.heard == []
        assert state_of(load(*LOOPBACK, *LOGIN, "insecure = true"), bmc).state is MachinePower.ON


def test_a_bmc_is_waited_for_as_long_as_the_file_says(load):
    with serving(FakeBmc(slow=2.0)) as bmc:
        begin = time.monotonic()
        reading = state_of(load(*LOOPBACK, *LOGIN, "allow_http = true", "timeout = 0.5"), bmc)
        assert "did not answer in time" in reading.reason
        assert 0.4 < time.monotonic() - begin < 1.5


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("username = blazar",), "username and password go together"),
        (("allowed_networks = x",), r"\[redfish\] allowed_networks"),
        (("credentials_file = /nowhere/bmcs.json",), "credentials_file cannot be read: No such file"),
    ],
)
def test_what_cannot_be_is_refused_when_a_process_starts(load, lines, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        assemble.bmcs(load("[redfish]", *lines))
