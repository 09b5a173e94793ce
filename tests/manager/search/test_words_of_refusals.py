# SPDX-License-Identifier: Apache-2.0
"""A refusal has the words of what was asked for, whatever its type."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import NotEnoughResources
from tests.world import a_host, a_network, addresses, devices, instances, servers, things, units, volumes

ASKED = [
    (a_host(9), "hosts", "at least 9 requested"),
    (instances(99), "hosts", "99 instances requested, 1 hosts match, 16 instances fit."),
    (servers(99), "hosts", "99 servers requested, 1 hosts match, 4 servers fit."),
    (volumes(9), "volume pools", "9 volumes requested, 1 volume pools match, 3 volumes fit."),
    (things(9), "generic resources", "at least 9 requested"),
    (units(9), "generic resources", "9 microscope units requested, 2 generic resources match, 4 microscope units fit."),
    (devices(9), "devices", "at least 9 requested"),
    (addresses(9), "floating IPs", "at least 9 requested"),
    (a_network(), "network segments", "at least 1 requested"),
]


@pytest.mark.parametrize(("request_", "nouns", "counted"), ASKED)
def test_a_refusal_has_the_words_of_what_was_asked_for(a_world, request_, nouns, counted):
    world = a_world(hosts=1)
    for number in range(2):
        world.register_thing(f"m-{number}", capacity=4)
    world.register_device()
    world.register_pools(1)
    world.register_addresses(21)
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(request_)
    assert refused.value.message.startswith(f"Not enough {nouns} available: {counted}")


def test_units_stay_together_on_what_they_are_of(a_world):
    world = a_world(hosts=0)
    for number in range(2):
        world.register_thing(f"m-{number}", capacity=4)
    with pytest.raises(NotEnoughResources, match="4 of 8 on one generic resource; 4 microscope units fit"):
        world.lease(units(6))
