# SPDX-License-Identifier: Apache-2.0
"""Uses the panels of blazar-dashboard in Horizon against a service, as a browser does; prints what it got as JSON.

Runs in the environment that has them, after ``django.setup()``; the argument is the URL. Only Keystone is played here.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from blazar_dashboard.api import client
from django.contrib.messages import get_messages
from django.test import Client
from django.test.utils import setup_test_environment
from keystoneauth1 import token_endpoint
from openstack_auth import user, utils
from openstack_dashboard import api

SERVICE = sys.argv[1]
TOKEN = "root:demo:admin"
LEASES, HOSTS = "/project/leases/", "/admin/hosts/"


def catalog():
    names = ("identity", "compute", "reservation")
    return [
        {"type": name, "name": name, "endpoints": [{"region": "RegionOne", "interface": "public", "url": SERVICE}]}
        for name in names
    ]


def operator(request):
    token = SimpleNamespace(
        id=TOKEN,
        project={"id": "demo", "name": "demo", "domain_id": "default"},
        tenant={"id": "demo", "name": "demo"},
        domain={"id": None, "name": None},
        user={"id": "root", "name": "root"},
        user_domain_id="default",
        expires=datetime.now(UTC) + timedelta(days=1),
        is_federated=False,
    )
    found = user.User(
        id="root",
        token=token,
        user="root",
        user_domain_id="default",
        user_domain_name="Default",
        project_id="demo",
        project_name="demo",
        service_catalog=catalog(),
        roles=[{"id": "1", "name": "admin"}, {"id": "2", "name": "member"}],
        authorized_tenants=[SimpleNamespace(id="demo", name="demo", enabled=True)],
        enabled=True,
        endpoint=SERVICE,
        services_region="RegionOne",
    )
    found._is_system_user = False
    found.is_token_expired = lambda margin=None: False
    return found


def hypervisors(request):
    return [SimpleNamespace(hypervisor_hostname=f"node-{number}") for number in (1, 2, 3)]


setup_test_environment()
utils.get_user = operator
client.v3.Token = lambda url, token, **scope: token_endpoint.Token(SERVICE, token)
api.nova.hypervisor_list = hypervisors
browser = Client()
seen = {}


def note(step, answer):
    said = [str(message) for message in get_messages(answer.wsgi_request)]
    seen[step] = {"status": answer.status_code, "said": said, "text": answer.content.decode()}
    return answer


def get(step, path):
    return note(step, browser.get(path))


def post(step, path, **form):
    return note(step, browser.post(path, form))


def ids(path, table):
    """Return what the buttons of a table's rows delete."""
    return re.findall(rf'value="{table}__delete__([^"]+)"', browser.get(path).content.decode())


def text_of(answer):
    return re.sub(r"(<[^>]*>|\s)+", " ", answer.content.decode())


def work():
    get("no leases", LEASES)
    chosen = {"select_hosts_role_member": ["node-1", "node-2"], "extra_caps": '{"gpu": "A100"}'}
    post("create hosts", HOSTS + "create/", **chosen)
    get("hosts", HOSTS)
    first, second = ids(HOSTS, "hosts")
    get("host", f"{HOSTS}{first}/")
    post("update host", f"{HOSTS}{first}/update", host_id=first, values='{"rack": "r7"}')
    get("host updated", f"{HOSTS}{first}/")

    host = {"resource_type": "host", "min_hosts": 1, "max_hosts": 1, "hypervisor_properties": ""}
    dates = {"start_date": "2040-05-01 10:00", "end_date": "2040-05-01 12:00"}
    needs = {"resource_properties": '["==", "$gpu", "A100"]'}
    post("create lease", LEASES + "create/", name="of hosts", **dates, **host, **needs)
    sizes = {"amount": 2, "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "affinity": ""}
    post("create servers", LEASES + "create/", name="of servers", **dates, resource_type="instance", **sizes)
    post("refused lease", LEASES + "create/", name="too many", **dates, **{**host, "min_hosts": 9, "max_hosts": 9})
    get("leases", LEASES)
    both = ids(LEASES, "leases")
    for lease in both:
        answer = get(f"lease {lease}", f"{LEASES}{lease}/")
        if "physical:host" in text_of(answer):
            mine = lease
    get("calendar", LEASES + "calendar/host/")
    get("calendar data", LEASES + "calendar/host/resources.json")
    get("update form", f"{LEASES}{mine}/update")
    post("update lease", f"{LEASES}{mine}/update", lease_id=mine, lease_name="longer", end_time="+1h")
    get("lease updated", f"{LEASES}{mine}/")
    for lease in both:
        post(f"delete {lease}", LEASES, action=f"leases__delete__{lease}")
    get("leases deleted", LEASES)
    post("delete host", HOSTS, action=f"hosts__delete__{second}")
    get("host deleted", HOSTS)


work()
print(json.dumps(seen))
