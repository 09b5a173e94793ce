# SPDX-License-Identifier: Apache-2.0
"""Reservations as they are written on a command line."""

from __future__ import annotations

import pytest
from blazarclient.exception import IncorrectLease
from blazarclient.reservation_text import check_references, read_change, read_reservation

ID = "11111111-2222-4333-8444-000000000001"


def test_a_network_needs_its_name_only_and_a_number_is_a_name():
    assert read_reservation("resource_type=network,network_name=101") == {
        "resource_type": "network",
        "network_name": "101",
        "network_description": "",
        "network_properties": "",
        "resource_properties": "",
    }
    with pytest.raises(IncorrectLease, match="A reservation of network needs network_name"):
        read_reservation("resource_type=network")
    with pytest.raises(IncorrectLease, match="network has no key name; choose from"):
        read_reservation("resource_type=network,name=lab")


def test_devices_have_a_least_and_a_greatest_number():
    text = 'resource_type=device,min=2,resource_properties=["==","$model","rpi4"]'
    assert read_reservation(text) == {
        "resource_type": "device",
        "min": 2,
        "max": 2,
        "resource_properties": '["==","$model","rpi4"]',
    }
    with pytest.raises(IncorrectLease, match="min cannot be more than max"):
        read_reservation("resource_type=device,min=2,max=1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("network=@0", {"network": {"reservation": 0}}),
        ("networks=@12", {"networks": [{"reservation": 12}]}),
        ('networks=["@0", "@1"]', {"networks": [{"reservation": 0}, {"reservation": 1}]}),
        ('networks=[{"uuid": "n-1"}, "@1"]', {"networks": [{"uuid": "n-1"}, {"reservation": 1}]}),
        ('owner="@bob"', {"owner": "@bob"}),
        ('owners=["@bob"]', {"owners": ["@bob"]}),
    ],
)
def test_a_reservation_refers_to_another_by_its_number(text, value):
    assert read_reservation(f"resource_type=virtual:server,{text}") == {"resource_type": "virtual:server", **value}


def test_a_change_refers_to_another_reservation_by_its_id():
    text = f"id=r,resource_type=virtual:server,networks=@{ID}"
    assert read_change(text)["networks"] == [{"reservation": ID}]


@pytest.mark.parametrize("text", ["network=@", "network=@first", "network=@0x", "network=@-1"])
def test_what_is_no_reference_is_told(text):
    with pytest.raises(IncorrectLease, match="is no reference; write network=@0 for the first"):
        read_reservation(f"resource_type=virtual:server,{text}")


@pytest.mark.parametrize(
    ("networks", "sentence"),
    [
        ("@1", "networks=@1 refers to its own reservation"),
        ("@2", "networks=@2 refers to a reservation that the lease does not have; there are @0 to @1"),
        (f"@{ID}", "refers to a reservation by its id; in a new lease give its number"),
    ],
)
def test_references_of_a_new_lease_name_others_of_its_reservations(networks, sentence):
    network = read_reservation("resource_type=network,network_name=lab")
    good = read_reservation("resource_type=virtual:server,networks=@0")
    check_references([network, good])
    with pytest.raises(IncorrectLease, match=sentence):
        check_references([network, read_reservation(f"resource_type=virtual:server,networks={networks}")])


def test_servers_with_a_network_of_their_lease_are_written_in_one_line():
    text = 'resource_type=network,network_name=lab,subnet={"cidr": "10.0.0.0/24"}'
    assert read_reservation(text)["subnet"] == {"cidr": "10.0.0.0/24"}
    text = "resource_type=virtual:server,flavor=42,image=7,networks=@0,volumes=@1,floating_ip=@2,amount=2"
    assert read_reservation(text) == {
        "resource_type": "virtual:server",
        "flavor": "42",
        "image": "7",
        "networks": [{"reservation": 0}],
        "volumes": [{"reservation": 1}],
        "floating_ip": {"reservation": 2},
        "amount": 2,
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which a command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "course.yaml").write_text("heat_template_version: 2018-08-31\nresources: {}\n", encoding="utf-8")
    (tmp_path / "node.yaml").write_text("resources: {}", encoding="utf-8")
    (tmp_path / "init.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("environment=@node.yaml", {"environment": "resources: {}"}),
        ("parameters=@node.yaml", {"parameters": "resources: {}"}),
        ('parameters={"flavor": "small", "count": 2}', {"parameters": {"flavor": "small", "count": 2}}),
        ("files=@node.yaml", {"files": {"node.yaml": "resources: {}"}}),
        ('files=["node.yaml", "init.sh"]', {"files": {"node.yaml": "resources: {}", "init.sh": "#!/bin/sh\n"}}),
        ('files={"a": "b"}', {"files": {"a": "b"}}),
        ("stack_name=2030,timeout_mins=10", {"stack_name": "2030", "timeout_mins": 10}),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_stack_has_its_documents_from_files(text, value):
    template = "heat_template_version: 2018-08-31\nresources: {}\n"
    found = read_reservation(f"resource_type=virtual:stack,template=@course.yaml,{text}")
    assert found == {"resource_type": "virtual:stack", "template": template, **value}


@pytest.mark.parametrize("text", ["template=@no.yaml", 'files=["course.yaml", "no.yaml"]', "template=@picture"])
def test_a_file_that_cannot_be_read_is_named(text, folder):
    (folder / "picture").write_bytes(b"\xff\xfe")
    with pytest.raises(IncorrectLease, match=r"The file '(no.yaml|picture)' of a reservation cannot be read"):
        read_reservation(f"resource_type=virtual:stack,{text}")
