# SPDX-License-Identifier: Apache-2.0
"""What Nova is asked for the servers on hosts."""

from __future__ import annotations

from blazar.clouds.openstack.evacuation import OpenStackEvacuation
from tests.clouds.test_access import NOVA, an_access, sent, web

__all__ = ["web"]


def listed(id, host):
    return {
        "id": id,
        "name": id,
        "tenant_id": "p",
        "user_id": "u",
        "status": "ACTIVE",
        "OS-EXT-SRV-ATTR:host": host,
        "OS-EXT-STS:task_state": None,
        "image": {"id": "i"},
        "flavor": {"original_name": "small", "vcpus": 1, "ram": 512, "disk": 1, "extra_specs": {}},
    }


def test_the_groups_of_all_servers_on_several_hosts_are_listed_once(web):
    for host in ("n1", "n2"):
        web.get(f"{NOVA}/servers/detail?host={host}", json={"servers": [listed(f"on-{host}", host)]})
    group = {"id": "g", "policy": "affinity", "members": ["on-n1", "on-n2"]}
    web.get(f"{NOVA}/os-server-groups", json={"server_groups": []})
    web.get(f"{NOVA}/os-server-groups?offset=0", json={"server_groups": [group]})
    found = OpenStackEvacuation(an_access(), None).occupants("n1", "n2")
    assert [(each.id, each.host, each.group.id) for each in found] == [("on-n1", "n1", "g"), ("on-n2", "n2", "g")]
    assert [call.qs["offset"] for call in sent(web, "/os-server-groups")] == [["0"], ["1"]]


def test_groups_are_not_listed_where_no_server_is(web):
    web.get(f"{NOVA}/servers/detail", json={"servers": []})
    assert OpenStackEvacuation(an_access(), None).occupants("n1", "n2") == ()
    assert len(sent(web, "/servers/detail")) == 2
    assert sent(web, "/os-server-groups") == []
