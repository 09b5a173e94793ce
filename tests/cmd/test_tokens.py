# SPDX-License-Identifier: Apache-2.0
"""How the manager proves to a service of the operator's who it is."""

from __future__ import annotations

import pytest
import requests
from keystoneauth1 import exceptions as ksa

from blazar.clouds.openstack import Access
from blazar.clouds.openstack.access import ServiceUser
from blazar.clouds.openstack.options import credentials
from blazar.model.base.errors import CloudUnavailable


def test_the_token_is_the_one_that_keystone_gives_the_service_user(load, working, stub):
    user = ServiceUser(Access(credentials(load(*working()))).session)
    token = user.token()
    assert token
    assert user.token() == token
    user.renew()
    assert user.token()


@pytest.mark.parametrize("error", [ksa.Unauthorized(), ksa.ConnectFailure("hush"), requests.ConnectionError("hush")])
def test_without_one_there_is_a_sentence_and_no_secret_in_it(error):
    class Session:
        def get_token(self):
            raise error

    with pytest.raises(CloudUnavailable, match="does not issue a token for the service user") as refused:
        ServiceUser(Session()).token()
    assert "hush" not in refused.value.message


def test_a_wrong_password_is_the_same(load, working):
    with pytest.raises(CloudUnavailable):
        ServiceUser(Access(credentials(load(*working(password="wrong")))).session).token()
