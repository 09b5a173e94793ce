# SPDX-License-Identifier: Apache-2.0
"""What users name for servers is looked up as their project sees it, before anything is booked."""

from __future__ import annotations

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import MemoryStorage, of_size
from blazar.clouds.simulated.state import BootImageState, NetworkState, SubnetState
from blazar.context import scope
from blazar.model.base.errors import InvalidInput, NotFound, RoleMissing
from blazar.resources.contract.values import Given
from blazar.resources.servers.checks import ServerChecks
from tests.people import PeopledCloud
from tests.world import ManualClock

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINZkG171DjZbTnvAsKfM4N0lbLF16hJvVKq9EBzZjWvF"


@pytest.fixture
def simulated():
    found = PeopledCloud(MemoryStorage(of_size(1)), clock=ManualClock())
    found.operators.offer_flavor(Flavor("tiny", "tiny", 1, 64, 0, public=True))
    found.operators.offer_flavor(Flavor("theirs", "theirs", 1, 64, 0))
    subnets = [SubnetState("s", "10.0.0.0/24")]
    with found.change_state() as kept:
        for image in (BootImageState("theirs", project_id="q"), BootImageState("queued", status="queued")):
            kept.boot.images[image.id] = image
        for network in (
            NetworkState("mine", "mine", external=False, project_id="p", subnets=subnets),
            NetworkState("theirs", "theirs", external=False, project_id="q", subnets=subnets),
            NetworkState("empty", "empty", external=False, project_id="p"),
            NetworkState("public", "public", subnets=subnets),
        ):
            kept.networks[network.id] = network
        kept.boot.user_keys.update({"u/mine": KEY, "v/theirs": KEY})
    return found


def resolve(simulated, **given):
    with scope(user_id="u"):
        return ServerChecks(simulated.cloud).resolve(Given(given), project_id="p", reservation=None)


def networks(*ids):
    return {"networks": [{"uuid": id_} for id_ in ids]}


def test_what_the_project_can_use_is_found(simulated):
    found = resolve(
        simulated, image="cirros", flavor="tiny", key_name="mine", security_groups=["default"], **networks("mine")
    )
    assert (found.image.id, found.flavor.id, found.public_key) == ("cirros", "tiny", KEY)


def test_what_is_not_named_is_not_looked_up(simulated):
    found = resolve(simulated, image="cirros", networks="auto", flavor=None, key_name="nobody's", public_key=KEY)
    assert (found.flavor, found.public_key) == (None, None)


@pytest.mark.parametrize(
    ("given", "error", "pointer"),
    [
        ({"image": "theirs"}, NotFound, "/image"),
        ({"image": "queued"}, InvalidInput, "/image"),
        ({"flavor": "theirs"}, NotFound, "/flavor"),
        (networks("mine", "theirs"), NotFound, "/networks/1"),
        (networks("empty"), InvalidInput, "/networks/0"),
        (networks("public"), InvalidInput, "/networks/0"),
        ({"security_groups": ["default", "nothing-like-it"]}, NotFound, "/security_groups/1"),
        ({"key_name": "theirs"}, NotFound, "/key_name"),
    ],
)
def test_what_the_project_cannot_use_is_refused(simulated, given, error, pointer):
    with pytest.raises(error) as refused:
        resolve(simulated, **{"image": "cirros", **given})
    assert refused.value.pointer == pointer


def test_ids_that_are_paths_are_refused(simulated):
    for field in ("image", "flavor"):
        with pytest.raises(InvalidInput, match=f"{field} is"):
            resolve(simulated, **{field: "../servers"})


def test_without_a_user_there_is_no_key_pair(simulated):
    with pytest.raises(NotFound, match="key pair"):
        ServerChecks(simulated.cloud).resolve(Given({"key_name": "mine"}), project_id="p", reservation=None)


def test_a_project_without_the_role_is_told(simulated):
    simulated.operators.close_project("p")
    with pytest.raises(RoleMissing):
        resolve(simulated, image="cirros")
