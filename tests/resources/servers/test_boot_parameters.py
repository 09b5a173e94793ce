# SPDX-License-Identifier: Apache-2.0
"""What a request for servers may say, and what a reservation keeps of it."""

from __future__ import annotations

import base64
import json

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import InvalidInput
from blazar.model.leases.reservation import Content
from blazar.resources.hosts.flavors import format_flavor
from blazar.resources.servers.parameters import DEFAULTS, ServerParameters

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINZkG171DjZbTnvAsKfM4N0lbLF16hJvVKq9EBzZjWvF me@here"
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n-----END OPENSSH PRIVATE KEY-----"
SECRET = base64.b64encode(b"password: secret").decode()
LEAST = {"image": "cirros", "vcpus": 1, "memory_mb": 64, "disk_gb": 0}


def checked(source=None, **given) -> ServerParameters:
    return ServerParameters.checked({**DEFAULTS, **LEAST, **given}, source)


def test_what_is_not_said_has_a_default():
    assert checked() == ServerParameters(
        amount=1,
        name="",
        image="cirros",
        flavor=None,
        vcpus=1,
        memory_mb=64,
        disk_gb=0,
        affinity=None,
        resource_properties="",
        networks="auto",
        key_name=None,
        public_key=None,
        user_data=None,
        metadata={},
        security_groups=(),
        volumes=(),
        floating_ip=None,
        source_flavor=None,
        before_end="default",
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"networks": "none", "affinity": True, "amount": 3, "name": "web"},
        {"networks": [{"uuid": "net-1"}, {"uuid": "net-2"}], "security_groups": ["default", "web"]},
        {"public_key": KEY, "key_name": "mine", "user_data": SECRET, "metadata": {"role": "web", "a b": ""}},
        {"resource_properties": '["=", "$hypervisor_hostname", "node-1"]', "before_end": "snapshot"},
        {
            "flavor": 42,
            "source": format_flavor(Flavor("42", "f", 1, 64, 0, extra_specs={"trait:CUSTOM_A": "required"})),
        },
    ],
    ids=["least", "plain", "networks", "secrets", "hosts", "flavor"],
)
def test_what_a_reservation_keeps_is_read_as_it_was_given(given):
    wanted = checked(**given)
    kept = Content(json.loads(json.dumps(dict(wanted.content.values))))
    assert ServerParameters.of(kept) == wanted


def test_servers_take_of_their_hosts_what_their_flavor_says():
    flavor = Flavor("f", "f", 2, 64, 1, ephemeral_gb=3, extra_specs={"trait:CUSTOM_A": "required"})
    wanted = checked(flavor="f", source=format_flavor(flavor))
    assert wanted.source == flavor
    assert dict(wanted.per_instance) == {"VCPU": 2, "MEMORY_MB": 64, "DISK_GB": 4}
    assert wanted.traits.required == {"CUSTOM_A"}
    assert dict(checked(vcpus=3).per_instance) == {"VCPU": 3, "MEMORY_MB": 64}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"image": "../etc"}, "image is"),
        ({"image": ".."}, "the id of an image"),
        ({"image": True}, "image is"),
        ({"flavor": ""}, "the id of a flavor"),
        ({"vcpus": 0}, "vcpus"),
        ({"amount": 0}, "amount"),
        ({"name": 7}, "name"),
        ({"networks": []}, "networks is"),
        ({"networks": "net-1"}, "networks is"),
        ({"networks": ["net-1"]}, r"networks\[0\]"),
        ({"networks": [{"uuid": "a"}, {"uuid": "b", "port": "c"}]}, r"networks\[1\]"),
        ({"networks": [{"uuid": "a/b"}]}, r"networks\[0\]\.uuid"),
        ({"networks": [{"uuid": "a"}] * 33}, "1 to 32"),
        ({"security_groups": "default"}, "security_groups is"),
        ({"security_groups": [""]}, "security_groups is"),
        ({"metadata": ["a"]}, "metadata is"),
        ({"metadata": {"a": 1}}, "metadata has"),
        ({"metadata": {"a/b": "c"}}, "metadata has"),
        # Letters beyond ASCII, and blanks around a name, are refused by Nova only when the server is booted.
        ({"metadata": {"rôle": "web"}}, "metadata has"),
        ({"name": " web"}, "name is"),
        ({"name": "web\n"}, "name is"),
        ({"name": "we\u200bb"}, "name is"),
        ({"name": "web\U0001f600"}, "name is"),
        ({"metadata": {"blazar:reservation": "another"}}, "do not begin with"),
        ({"metadata": {"a": "b" * 256}}, "at most 255"),
    ],
)
def test_what_cannot_be_is_refused_with_the_name_of_the_field(given, says):
    with pytest.raises(InvalidInput, match=says):
        checked(**given)


@pytest.mark.parametrize(
    "key",
    [
        "",
        7,
        "ssh-ed25519",
        "ssh-ed25519 nothing-like-it",
        # The data is of a key of another kind than the first word says.
        KEY.replace("ssh-ed25519", "ssh-rsa"),
        'command="true" ' + KEY,
        f"{KEY}\n{KEY}",
        f"{KEY}\r{KEY}",
        KEY + "x" * 16384,
        PRIVATE_KEY,
    ],
)
def test_what_is_no_public_key_is_refused_and_not_quoted(key):
    with pytest.raises(InvalidInput, match="public_key cannot be read") as refused:
        checked(public_key=key)
    assert "b3BlbnNzaC1rZXktdjE" not in refused.value.message


def test_blanks_around_a_public_key_are_cut_off():
    assert checked(public_key=f" {KEY}\n").public_key == KEY


@pytest.mark.parametrize("value", ["password: secret", 7, SECRET + "*", "é", "a" * 65536], ids=range(5))
def test_user_data_that_is_no_base64_is_refused_and_not_quoted(value):
    with pytest.raises(InvalidInput, match="user_data cannot be read") as refused:
        checked(user_data=value)
    assert str(value) not in refused.value.message


def test_user_data_is_not_in_the_text_of_the_parameters():
    assert SECRET not in repr(checked(user_data=SECRET))
