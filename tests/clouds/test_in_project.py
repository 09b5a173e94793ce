# SPDX-License-Identifier: Apache-2.0
"""The service user as a member of other projects: how its tokens there are got, kept, renewed and refused."""

from __future__ import annotations

import pytest
from keystoneauth1 import fixture

from blazar.clouds.openstack import access as access_module
from blazar.clouds.openstack import open_cloud
from blazar.model.base.errors import CloudUnavailable, RoleMissing
from tests.clouds.test_access import KEYSTONE, NOVA, an_access, catalog, sent, web

__all__ = ["web"]

TOKENS = f"{KEYSTONE}/auth/tokens"


class Keystone:
    """Issues numbered tokens; those for a project only where the service user has a role."""

    def __init__(self, web):
        self.roles = {"physics"}
        self.revoked = set()
        self.given = []
        web.post(TOKENS, json=self.answer)
        web.get(f"{KEYSTONE}/auth/projects", json=self.projects)

    def answer(self, request, context):
        auth = request.json()["auth"]
        project = auth["scope"]["project"].get("id")
        if project:
            own = auth["identity"]["token"]["id"]
            if own in self.revoked or project not in self.roles:
                return self.refused(context)
        token = f"{project or 'own'}-{len(self.given)}"
        self.given.append(token)
        context.headers["X-Subject-Token"] = token
        context.status_code = 201
        return catalog() if project is None else fixture.V3Token(project_id=project) | {"token": catalog()["token"]}

    def projects(self, request, context):
        if request.headers["X-Auth-Token"] in self.revoked:
            return self.refused(context)
        return {"projects": [{"id": project} for project in self.roles]}

    @staticmethod
    def refused(context):
        context.status_code = 401
        return {"error": {"code": 401, "message": "The request you have made requires authentication."}}


@pytest.fixture
def keystone(web):
    web.get(f"{NOVA}/servers/1", json={})
    return Keystone(web)


def test_calls_in_a_project_have_a_token_of_it_which_is_kept(web, keystone):
    access = an_access()
    for _ in range(3):
        access.in_project("physics").compute.get("/servers/1")
    assert keystone.given == ["own-0", "physics-1"]
    assert {call.headers["X-Auth-Token"] for call in sent(web)} == {"physics-1"}
    access.compute.get("/servers/1")
    assert sent(web)[-1].headers["X-Auth-Token"] == "own-0"


def test_a_token_that_has_ended_is_replaced_by_one_of_a_new_token(web, keystone):
    access = an_access()
    nova = access.in_project("physics").compute
    nova.get("/servers/1")
    keystone.revoked.add("own-0")
    web.get(f"{NOVA}/servers/1", [{"status_code": 401}, {"json": {"server": {}}}])
    assert nova.get("/servers/1") == {"server": {}}
    assert sent(web)[-1].headers["X-Auth-Token"] == "physics-3"


def test_a_project_without_a_role_is_refused_until_there_is_one(web, keystone):
    access = an_access()
    for _ in range(2):
        with pytest.raises(RoleMissing, match="no role in project art"):
            access.in_project("art")
    keystone.roles.add("art")
    access.in_project("art").compute.get("/servers/1")


def test_a_role_that_is_taken_away_is_missed_at_the_next_call(web, keystone):
    access = an_access()
    nova = access.in_project("physics").compute
    keystone.roles.clear()
    web.get(f"{NOVA}/servers/1", status_code=401)
    with pytest.raises(RoleMissing):
        nova.get("/servers/1")


def test_a_check_believes_for_minutes_what_it_saw(web, keystone, monkeypatch):
    access = an_access()
    projects = open_cloud(access).projects
    projects.check_role("physics")
    keystone.roles.clear()
    projects.check_role("physics")
    monkeypatch.setattr(access_module, "RECENT_SECONDS", -1.0)
    with pytest.raises(RoleMissing):
        projects.check_role("physics")


def test_a_keystone_that_fails_is_no_missing_role(web, keystone):
    access = an_access()
    access.session.get_token()
    web.post(TOKENS, status_code=503)
    with pytest.raises(CloudUnavailable) as failure:
        access.in_project("physics")
    assert not isinstance(failure.value, RoleMissing)


def test_the_projects_that_were_used_last_are_kept(web, keystone, monkeypatch):
    monkeypatch.setattr(access_module, "PROJECTS", 2)
    keystone.roles |= {"art", "music"}
    access = an_access()
    for project in ("physics", "art", "physics", "music", "physics", "art"):
        access.in_project(project)
    assert [token.partition("-")[0] for token in keystone.given] == ["own", "physics", "art", "music", "art"]
