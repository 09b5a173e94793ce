# SPDX-License-Identifier: Apache-2.0
"""A smoke test of the cloud: it makes one of everything and deletes it all."""

import contextlib
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")

import openstack  # noqa: E402

OPTIONAL = os.environ.get("CLOUD_OPTIONAL", "").split(",")
NAME = f"check-{os.getpid()}"
STARTED = time.monotonic()


@contextlib.contextmanager
def step(what):
    began = time.monotonic()
    try:
        yield
    except Exception:
        print(f"FAILED {what}")
        raise
    print(f"ok     {what} ({time.monotonic() - began:.1f} s)", flush=True)


def until(test, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        result = test()
        if result:
            return result
        time.sleep(0.3)
    raise Exception(f"no result after {patience} s")


def main(undo):
    admin = openstack.connect(cloud="admin")
    demo = openstack.connect(cloud="demo")
    # Host of a request, networks without automation.
    admin.compute.default_microversion = "2.90"
    demo.compute.default_microversion = "2.90"

    with step("hosts are up"):
        found = list(admin.compute.hypervisors(details=True))
        names = sorted(h.name for h in found if h.state == "up")
        print("      ", ", ".join(names))
        assert len(names) >= 2, names

    with step("two hosts in an aggregate, with a property"):
        aggregate = admin.compute.create_aggregate(name=NAME)
        undo.callback(admin.compute.delete_aggregate, aggregate)
        for name in names[:2]:
            admin.compute.add_host_to_aggregate(aggregate, name)
            undo.callback(admin.compute.remove_host_from_aggregate, aggregate, name)
        admin.compute.set_aggregate_metadata(aggregate, {"check": NAME})

    with step("aggregate is mirrored in Placement"):

        def mirrored():
            provider = next(iter(admin.placement.resource_providers(name=names[0])))
            answer = admin.placement.get(f"/resource_providers/{provider.id}/aggregates", microversion="1.19")
            return answer.json()["aggregates"]

        until(mirrored, 30)

    with step("custom resource class, provider and inventory in Placement"):
        kind = f"CUSTOM_{NAME}".upper().replace("-", "_")
        headers = {"microversion": "1.39"}
        r = admin.placement.put(f"/resource_classes/{kind}", **headers)
        assert r.status_code in (201, 204), r.text
        undo.callback(admin.placement.delete, f"/resource_classes/{kind}", **headers)
        host = next(iter(admin.placement.resource_providers(name=names[0])))
        r = admin.placement.post("/resource_providers", json={"name": NAME, "parent_provider_uuid": host.id}, **headers)
        assert r.status_code == 200, r.text
        provider = r.json()["uuid"]
        undo.callback(admin.placement.delete, f"/resource_providers/{provider}", **headers)
        r = admin.placement.post(
            f"/resource_providers/{provider}/inventories", json={"resource_class": kind, "total": 1}, **headers
        )
        assert r.status_code == 201, r.text

    with step("flavor with extra specs, access for one project"):
        flavor = admin.compute.create_flavor(name=NAME, vcpus=2, ram=1024, disk=2, is_public=False)
        undo.callback(admin.compute.delete_flavor, flavor)
        admin.compute.create_flavor_extra_specs(flavor, {"aggregate_instance_extra_specs:check": NAME})
        admin.compute.flavor_add_tenant_access(flavor, demo.current_project_id)

    with step("flavor asking for the custom resource"):
        special = admin.compute.create_flavor(name=f"{NAME}-special", vcpus=1, ram=512, disk=1, is_public=True)
        undo.callback(admin.compute.delete_flavor, special)
        admin.compute.create_flavor_extra_specs(special, {f"resources:{kind}": "1"})

    with step("network, subnet, router"):
        network = demo.network.create_network(name=NAME)
        undo.callback(demo.network.delete_network, network)
        subnet = demo.network.create_subnet(
            name=NAME, network_id=network.id, ip_version=4, cidr="192.168.77.0/24", is_dhcp_enabled=True
        )
        undo.callback(demo.network.delete_subnet, subnet)
        external = demo.network.find_network("public", ignore_missing=False)
        router = demo.network.create_router(name=NAME, external_gateway_info={"network_id": external.id})
        undo.callback(demo.network.delete_router, router)
        demo.network.add_interface_to_router(router, subnet_id=subnet.id)
        undo.callback(demo.network.remove_interface_from_router, router, subnet_id=subnet.id)

    image = demo.image.find_image("tiny", ignore_missing=False)

    def boot(**more):
        server = demo.compute.create_server(
            **dict(
                {"name": NAME, "image_id": image.id, "flavor_id": flavor.id, "networks": [{"uuid": network.id}]}, **more
            )
        )

        def delete():
            demo.compute.delete_server(server, ignore_missing=True)
            demo.compute.wait_for_delete(server, interval=0.3, wait=60)

        undo.callback(delete)
        return demo.compute.wait_for_server(server, interval=0.3, wait=90)

    with step("server boots inside the aggregate"):
        server = boot()
        where = admin.compute.get_server(server.id).compute_host
        print("      ", where, server.addresses)
        assert where in names[:2], where

    with step("its port is bound and ACTIVE"):
        port = next(iter(demo.network.ports(device_id=server.id)))
        seen = admin.network.get_port(port.id)
        assert seen.binding_host_id == where, seen
        assert seen.binding_vif_type == "ovs", seen
        assert seen.status == "ACTIVE", seen.status

    with step("server on the custom resource lands on its host"):
        other = boot(name=f"{NAME}-special", flavor_id=special.id)
        assert admin.compute.get_server(other.id).compute_host == names[0]

    with step("the custom resource is used up: no second server"):
        try:
            boot(name=f"{NAME}-none", flavor_id=special.id)
        except openstack.exceptions.SDKException:
            pass
        else:
            raise Exception("a second server got the same resource")

    with step("allocations are in Placement"):
        r = admin.placement.get(f"/allocations/{server.id}", microversion="1.28")
        (used,) = r.json()["allocations"].values()
        assert used["resources"] == {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 2}, used

    with step("floating IP on the external network"):
        address = demo.network.create_ip(floating_network_id=external.id, port_id=port.id)
        undo.callback(demo.network.delete_ip, address)
        print("      ", address.floating_ip_address)

    with step("floating IP at a chosen address (admin)"):
        r = admin.network.post(
            "/floatingips",
            json={
                "floatingip": {
                    "floating_network_id": external.id,
                    "floating_ip_address": "172.24.4.200",
                    "project_id": demo.current_project_id,
                }
            },
        )
        assert r.status_code == 201, r.text
        undo.callback(admin.network.delete_ip, r.json()["floatingip"]["id"])

    with step("stop, start, snapshot"):
        demo.compute.stop_server(server)
        demo.compute.wait_for_server(server, status="SHUTOFF", interval=0.3)
        demo.compute.start_server(server)
        demo.compute.wait_for_server(server, interval=0.3)
        snapshot = demo.compute.create_server_image(server, f"{NAME}-image")
        undo.callback(demo.image.delete_image, snapshot.id)
        until(lambda: demo.image.get_image(snapshot.id).status == "active")

    with step("boot from the snapshot"):
        boot(name=f"{NAME}-again", image_id=snapshot.id)

    with step("live migration"):
        target = names[1] if where == names[0] else names[0]
        until(lambda: demo.compute.get_server(server.id).task_state is None)
        admin.compute.live_migrate_server(server, host=target, block_migration="auto")

        def moved():
            now = admin.compute.get_server(server.id)
            return now.compute_host == target and now.status == "ACTIVE"

        until(moved)
        port = admin.network.get_port(port.id)
        assert port.binding_host_id == target, port
        print("      ", where, "->", target)

    with step("a disabled host gets no server"):
        service = next(iter(admin.compute.services(binary="nova-compute", host=target)))
        admin.compute.disable_service(service, disabled_reason=NAME)
        try:
            spare = boot(name=f"{NAME}-spare")
            assert admin.compute.get_server(spare.id).compute_host == where
        finally:
            admin.compute.enable_service(service)

    with step("trunk with a sub-port, and the range of its network"):
        parent, sub = (demo.network.create_port(name=NAME, network_id=network.id) for _ in range(2))
        for each in (parent, sub):
            undo.callback(demo.network.delete_port, each)
        tagged = {"port_id": sub.id, "segmentation_type": "vlan", "segmentation_id": 7}
        undo.callback(demo.network.delete_trunk, demo.network.create_trunk(port_id=parent.id, sub_ports=[tagged]))
        segment = admin.network.get_network(network.id).provider_segmentation_id
        (found,) = (r for r in admin.network.network_segment_ranges() if r.network_type == "vxlan" and r.default)
        assert found.minimum <= segment <= found.maximum, segment

    with step("the service under test acts in a project that it is not in"):
        there = openstack.connect(cloud="blazar").connect_as_project("demo")
        assert there.current_project_id == demo.current_project_id

    if "cinder" in OPTIONAL:
        with step("volume: create, attach, detach"):
            volume = demo.block_storage.create_volume(size=1, name=NAME)
            undo.callback(demo.block_storage.wait_for_delete, volume)
            undo.callback(demo.block_storage.delete_volume, volume)
            demo.block_storage.wait_for_status(volume, "available", interval=0.3, wait=60)
            demo.compute.create_volume_attachment(server, volume_id=volume.id)
            demo.block_storage.wait_for_status(volume, "in-use", interval=0.3, wait=60)
            demo.compute.delete_volume_attachment(server, volume.id)
            demo.block_storage.wait_for_status(volume, "available", interval=0.3, wait=60)

        with step("volume: extend, snapshot, transfer to another project"):
            demo.block_storage.extend_volume(volume, 2)
            until(lambda: demo.block_storage.get_volume(volume.id).size == 2)
            snapshot = demo.block_storage.create_snapshot(volume_id=volume.id, name=NAME)
            demo.block_storage.wait_for_status(snapshot, "available", interval=0.3, wait=60)
            demo.block_storage.delete_snapshot(snapshot)
            demo.block_storage.wait_for_delete(snapshot, interval=0.3, wait=60)
            other = openstack.connect(cloud="alt_demo")
            for giver, taker in ((demo, other), (other, demo)):
                transfer = giver.block_storage.create_transfer(volume_id=volume.id, name=NAME)
                taker.block_storage.accept_transfer(transfer.id, transfer.auth_key)
                assert taker.block_storage.get_volume(volume.id).status == "available"

        with step("volume with an image, server on it"):
            root = demo.block_storage.create_volume(size=1, name=NAME, image_id=image.id)
            undo.callback(demo.block_storage.wait_for_delete, root)
            undo.callback(demo.block_storage.delete_volume, root)
            demo.block_storage.wait_for_status(root, "available", interval=0.3, wait=60)
            assert demo.block_storage.get_volume(root.id).is_bootable
            disk = {"boot_index": 0, "uuid": root.id, "source_type": "volume", "destination_type": "volume"}
            boot(name=f"{NAME}-root", image_id="", block_device_mapping=[disk])

        with step("a type leads to its pool, which takes what has room in it"):
            kind = admin.block_storage.create_type(name=NAME, extra_specs={"pool_name": "thick-2"})
            undo.callback(admin.block_storage.delete_type, kind)
            for size, status in ((40, "available"), (10, "error")):
                made = admin.block_storage.create_volume(size=size, name=NAME, volume_type=NAME)
                undo.callback(admin.block_storage.wait_for_delete, made)
                undo.callback(admin.block_storage.delete_volume, made)
                seen = admin.block_storage.wait_for_status(made, status, failures=[], interval=0.3, wait=60)
                assert status == "error" or admin.block_storage.get_volume(seen.id).host.endswith("#thick-2")

    if "heat" in OPTIONAL:
        with step("stack with one server"):
            stack = demo.orchestration.create_stack(
                name=NAME,
                template={
                    "heat_template_version": "2021-04-16",
                    "resources": {
                        "server": {
                            "type": "OS::Nova::Server",
                            "properties": {"image": "tiny", "flavor": "tiny", "networks": [{"network": network.id}]},
                        }
                    },
                },
            )

            def delete():
                demo.orchestration.delete_stack(stack)
                demo.orchestration.wait_for_delete(stack, interval=0.5, wait=120)

            undo.callback(delete)
            demo.orchestration.wait_for_status(
                stack, "CREATE_COMPLETE", failures=["CREATE_FAILED"], interval=0.5, wait=120
            )

    began = time.monotonic()
    undo.close()
    print(f"ok     everything deleted ({time.monotonic() - began:.1f} s)")
    left = [s.name for s in admin.compute.servers(all_projects=True) if s.name.startswith(NAME)]
    assert not left, left


with contextlib.ExitStack() as stack:
    try:
        main(stack)
    except Exception as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr)
        sys.exit(1)
print(f"all is well ({time.monotonic() - STARTED:.1f} s)")
