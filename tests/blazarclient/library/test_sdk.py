# SPDX-License-Identifier: Apache-2.0
"""``connection.reservation``: openstacksdk's names and exceptions over the library."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta

import openstack
import pytest
from blazarclient import exception, sdk
from blazarclient.library import Host, Lease, Transfer
from blazarclient.library.transport import MICROVERSION
from openstack import exceptions

from tests.blazarclient.library.stub import REQUEST_ID, SPOKEN, Asked, Says, Stub, lease, refused

ID = lease()["id"]
VERSION = {"id": "v1.0", "status": "CURRENT", "min_version": "1.0", "max_version": MICROVERSION}


class Service(Stub):
    """Answers openstacksdk's question for versions by itself, and keeps to the test with the rest."""

    def hears(self, asked: Asked) -> Says | None:
        if asked.path in ("/v1", "/v1/"):
            links = [{"rel": "self", "href": self.url}]
            return Says(200, {"version": {**VERSION, "links": links}})
        return None


@pytest.fixture
def service():
    service = Service()
    yield service
    service.stop()


def connected(service, **options):
    login = {"auth_type": "none", "auth": {"endpoint": service.url}}
    return openstack.connect(load_yaml_config=False, load_envvars=False, **login, **options)


@pytest.fixture
def reservation(service):
    return sdk.reservation(connected(service))


def test_registering_gives_the_connection_our_methods_and_asks_nothing(service):
    connection = connected(service)
    sdk.register(connection)
    assert service.asked == []
    service.says(Says(200, {"leases": [lease()], "links": []}))
    assert [each.name for each in connection.reservation.leases()] == ["training"]


def test_a_connection_whose_reservation_was_used_before_changes_over(service):
    service.says(Says(200, {"leases": []}))
    connection = connected(service)
    connection.reservation.get("/leases")
    sdk.register(connection)
    sdk.register(connection)
    assert isinstance(connection.reservation, sdk.Proxy)
    # What openstacksdk's own can do, ours can, too.
    assert connection.reservation.get("/leases").json() == {"leases": []}


def test_a_hook_in_clouds_yaml_is_enough(service):
    connection = connected(service, vendor_hook="blazarclient.sdk:register")
    assert isinstance(connection.reservation, sdk.Proxy)


def test_a_list_asks_only_when_something_is_asked_of_it_and_page_by_page(reservation, service):
    def page(asked):
        number = int(asked.path.rpartition("marker=")[2] or 0) if "marker" in asked.path else 0
        link = {"rel": "next", "href": f"http://elsewhere/leases?marker={number + 1}"}
        return Says(200, {"leases": [lease(f"lease-{number}")], "links": [link]})

    service.says(page)
    before = len(service.asked)
    leases = reservation.leases(state="all", limit=1)
    assert len(service.asked) == before
    assert [next(leases).name, next(leases).name] == ["lease-0", "lease-1"]
    assert len(service.asked) == before + 2


def test_a_value_serves_where_an_id_is_asked_for(reservation, service):
    service.says(Says(200, {"lease": lease(status="ACTIVE")}))
    one = reservation.get_lease(ID)
    assert isinstance(one, Lease)
    reservation.update_lease(one, name="new")
    reservation.end_lease(one)
    reservation.delete_lease(one)
    sent = [(asked.method, asked.path, asked.body) for asked in service.asked[-3:]]
    assert sent == [
        ("PUT", f"/v1/leases/{ID}", {"name": "new"}),
        ("PUT", f"/v1/leases/{ID}", {"end_date": "now"}),
        ("DELETE", f"/v1/leases/{ID}", None),
    ]


def test_a_lease_goes_to_another_project_and_back(reservation, service):
    new = {"OpenStack-API-Version": SPOKEN}
    offer = {"project_id": "chemistry", "lease": lease()}
    service.says(Says(200, {"transfer": offer, "transfers": [offer], "lease": lease(project_id="chemistry")}, new))
    reservation.create_transfer(ID, project_id="chemistry")
    (found,) = reservation.transfers()
    assert reservation.get_transfer(found) == reservation.find_transfer(ID)
    assert reservation.accept_transfer(found).project_id == "chemistry"
    reservation.decline_transfer(found)
    reservation.delete_transfer(found)
    assert [(asked.method, asked.path) for asked in (service.asked[0], *service.asked[-3:])] == [
        ("POST", f"/v1/leases/{ID}/transfer"),
        ("POST", f"/v1/transfers/{ID}/accept"),
        ("POST", f"/v1/transfers/{ID}/decline"),
        ("DELETE", f"/v1/leases/{ID}/transfer"),
    ]
    with pytest.raises(exceptions.InvalidRequest, match="does not tell which lease"):
        reservation.accept_transfer(Transfer(project_id="chemistry"))
    service.says(refused(404, "transfer_not_found", "There is no offer.", headers=new))
    assert reservation.delete_transfer(ID) is None


def test_what_a_dry_run_answers_has_no_id_to_go_on_with(reservation, service):
    service.says(Says(200, {"lease": lease(id=None)}))
    tried = reservation.create_lease("x", reservations=[], end_date="+1h", dry_run=True)
    assert service.asked[-1].path == "/v1/leases?dry_run=true"
    with pytest.raises(exceptions.InvalidRequest, match="has no id"):
        reservation.delete_lease(tried)


def test_what_is_not_there_is_none_to_find_and_no_error_to_delete(reservation, service):
    service.says(refused(404, "lease_not_found", "There is no lease."))
    assert reservation.delete_lease(ID) is None
    with pytest.raises(exceptions.NotFoundException):
        reservation.delete_lease(ID, ignore_missing=False)
    service.says(Says(200, {"leases": [], "links": []}))
    assert reservation.find_lease("nope") is None
    assert reservation.find_lease(name_or_id="nope", ignore_missing=True) is None
    with pytest.raises(exceptions.NotFoundException, match="There is no lease nope"):
        reservation.find_lease("nope", ignore_missing=False)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("status", "code", "theirs", "ours"),
    [
        (400, "invalid_value", exceptions.BadRequestException, exception.InvalidRequest),
        (403, "limit_exceeded", exceptions.ForbiddenException, exception.LimitExceeded),
        (404, "lease_not_found", exceptions.NotFoundException, exception.NotFound),
        (409, "not_enough_resources", exceptions.ConflictException, exception.NotEnoughResources),
        (412, "precondition_failed", exceptions.PreconditionFailedException, exception.PreconditionFailed),
        (406, "version_unsupported", exceptions.NotSupported, exception.UnsupportedVersion),
        (401, "unauthorized", exceptions.HttpException, exception.NotAuthorized),
        (500, "internal_error", exceptions.SDKException, exception.BlazarClientException),
    ],
)
def test_an_error_is_one_of_openstacksdk_and_one_of_ours(reservation, service, status, code, theirs, ours):
    service.says(refused(status, code, "No.", data={"n": 1}))
    for kind in (theirs, ours):
        with pytest.raises(kind, match=r"No\.$") as told:
            reservation.get_lease(ID)
        assert (told.value.code, told.value.status_code, told.value.request_id) == (status, status, REQUEST_ID)
        assert told.value.fault.data == {"n": 1}


def test_errors_of_lists_are_both_too(reservation, service):
    service.says(refused(403, "forbidden", "No."))
    with pytest.raises(exceptions.ForbiddenException):
        list(reservation.hosts())


def test_waiting_returns_what_was_waited_for(reservation, service):
    seen = []
    service.says(Says(200, {"lease": lease()}), Says(200, {"lease": lease(status="ACTIVE")}))
    assert reservation.wait_for_lease(ID, interval=0.001, callback=seen.append).status == "ACTIVE"
    assert [each.status for each in seen] == ["PENDING", "ACTIVE"]


def test_waiting_for_a_lease_that_fails_tells_why(reservation, service):
    reason = {"code": "quota_exceeded", "message": "the quota for servers is used up"}
    since = "2030-05-01T10:00:00Z"
    event = {"event_type": "start_lease", "time": since, "status": "ERROR", "reason": reason}
    service.says(Says(200, {"lease": lease(status="ERROR", events=[event])}))
    with pytest.raises(exceptions.ResourceFailure, match="^Lease training is ERROR, not ACTIVE: the quota for servers"):
        reservation.wait_for_lease(ID)


def test_waiting_for_a_lease_that_is_deleted_meanwhile_is_a_failure(reservation, service):
    service.says(Says(200, {"lease": lease(status="ACTIVE", deleted_at="2030-05-01T10:00:00Z")}))
    with pytest.raises(exceptions.ResourceFailure, match="is deleted, not ACTIVE") as error:
        reservation.wait_for_lease(ID)
    assert isinstance(error.value, exception.Failed)


def test_waiting_too_long_is_a_timeout(reservation, service):
    service.says(Says(200, {"lease": lease()}))
    with pytest.raises(exceptions.ResourceTimeout, match="was not ACTIVE within 0 s"):
        reservation.wait_for_lease(ID, wait=0)


def test_a_lease_is_extended_from_its_end(reservation, service):
    service.says(Says(200, {"lease": lease()}, {"ETag": '"1.1.a"'}))
    reservation.extend_lease(ID, timedelta(days=1))
    assert service.asked[-1].body == {"end_date": "2030-05-05T10:00:00Z"}
    assert service.asked[-1].headers["If-Match"] == '"1.1.a"'


def test_hosts_are_changed_by_value(reservation, service):
    host = {"id": "12", "name": "cn12", "capacity": {"VCPU": 64}, "disabled": None}
    service.says(Says(200, {"resource": host}))
    one = reservation.get_host("12")
    assert isinstance(one, Host)
    until = datetime(2030, 5, 2, tzinfo=UTC)
    reservation.disable_host(one, reason="fan", until=until)
    assert service.asked[-1].body == {"disabled": {"reason": "fan", "until": "2030-05-02T00:00:00Z"}}
    reservation.enable_host(one)
    assert service.asked[-1].body == {"disabled": None}


def test_methods_keep_the_help_of_the_library():
    assert inspect.getdoc(sdk.Proxy.create_lease).startswith("Book a lease.")
    assert "reservations" in inspect.signature(sdk.Proxy.create_lease).parameters


def test_finding_and_deleting_tell_their_arguments():
    assert str(inspect.signature(sdk.Proxy.find_host)).startswith("(self, /, name_or_id: 'str', ignore_missing: 'bool'")
    assert inspect.getdoc(sdk.Proxy.delete_feed) == "Revoke a feed: its link is dead at once."


@pytest.mark.parametrize("nobody", [None, 7, {"id": ID}])
def test_what_is_neither_an_id_nor_a_value_is_told(reservation, service, nobody):
    for method in (reservation.get_lease, reservation.delete_lease, reservation.get_host, reservation.wait_for_lease):
        with pytest.raises(exceptions.InvalidRequest, match="is neither an id, which is a text, nor something that"):
            method(nobody)


def test_a_status_is_waited_for_in_small_letters_as_elsewhere_in_openstacksdk(reservation, service):
    service.says(Says(200, {"lease": lease(status="ACTIVE")}))
    assert reservation.wait_for_lease(ID, "active", wait=0).status == "ACTIVE"


def test_a_connection_that_was_used_before_another_was_registered_changes_over_when_it_is_asked_for(service):
    service.says(Says(200, {"leases": []}))
    used, registered = connected(service), connected(service)
    used.reservation.get("/leases")
    sdk.register(registered)
    assert isinstance(sdk.reservation(used), sdk.Proxy)
    assert isinstance(used.reservation, sdk.Proxy)
