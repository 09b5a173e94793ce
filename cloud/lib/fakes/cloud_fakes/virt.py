# SPDX-License-Identifier: Apache-2.0
"""Nova's fake virt driver, made usable by services that restart.

Six things differ from nova.virt.fake:

* the size of a host is configurable (CLOUD_HOST_VCPUS, CLOUD_HOST_MEMORY_MB,
  CLOUD_HOST_DISK_GB in the environment of the process);
* it may have PCI devices: CLOUD_HOST_GPUS of one product, and
  CLOUD_HOST_GPUS_USED_ONCE of another;
* the servers a host "runs" are kept in a file under its state path, so that
  they are still there, in the same power state, after a restart;
* pause and suspend change the power state, and a live migration removes the
  server from its source;
* a live migration may fail, or go on until it is told otherwise or aborted
  (moves.py);
* a snapshot uploads a few bytes, so that the image becomes active, as with a
  real hypervisor.
"""

import io
import json
import os
import threading

import nova.conf
from nova.compute import power_state, task_states
from nova.image import glance
from nova.virt import fake

from cloud_fakes.moves import Moves

CONF = nova.conf.CONF


def _size(name, default):
    return int(os.environ.get(name) or default)


def _device(product_id, bus):
    """A PCI device as libvirt's driver describes it."""
    return {
        "dev_id": f"pci_0000_{bus:02x}_00_0",
        "address": f"0000:{bus:02x}:00.0",
        "vendor_id": "10de",
        "product_id": product_id,
        "label": f"label_10de_{product_id}",
        "dev_type": "type-PCI",
        "status": "available",
        "numa_node": None,
    }


class CloudFakeDriver(fake.FakeDriverWithoutFakeNodes):
    vcpus = _size("CLOUD_HOST_VCPUS", 16)
    memory_mb = _size("CLOUD_HOST_MEMORY_MB", 65536)
    local_gb = _size("CLOUD_HOST_DISK_GB", 1000)
    gpus = [_device("20b5", 0x40 + number) for number in range(_size("CLOUD_HOST_GPUS", 0))]
    used_once = [_device("2330", 0x80 + number) for number in range(_size("CLOUD_HOST_GPUS_USED_ONCE", 0))]

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self._save_lock = threading.Lock()
        self._sizes = {}
        self._image_api = glance.API()
        self._moves = Moves()

    def get_host_uptime(self):
        return " 00:00:00 up 1 day,  0:00,  0 users,  load average: 0, 0, 0"

    def get_available_resource(self, nodename):
        return super().get_available_resource(nodename) | {
            "pci_passthrough_devices": json.dumps(self.gpus + self.used_once)
        }

    # What the "hypervisor" runs, on disk.

    def _path(self):
        return os.path.join(CONF.state_path, "fake-servers.json")

    def init_host(self, host):
        super().init_host(host)
        try:
            with open(self._path()) as f:
                saved = json.load(f)
        except (OSError, ValueError):
            saved = {}
        for uuid, item in saved.items():
            self.instances[uuid] = fake.FakeInstance(item["name"], item["state"], uuid)
            self._sizes[uuid] = item["size"]
            self.resources.claim(*item["size"])

    def _save(self):
        with self._save_lock:
            data = {
                uuid: {"name": i.name, "state": i.state, "size": self._sizes.get(uuid, [0, 0, 0])}
                for uuid, i in list(self.instances.items())
            }
            temporary = self._path() + ".new"
            with open(temporary, "w") as f:
                json.dump(data, f)
            os.replace(temporary, self._path())

    def _remember(self, instance):
        flavor = instance.flavor
        self._sizes[instance.uuid] = [flavor.vcpus, flavor.memory_mb, flavor.root_gb]
        self._save()

    def spawn(self, context, instance, *args, **kwargs):
        super().spawn(context, instance, *args, **kwargs)
        self._remember(instance)

    def destroy(self, context, instance, *args, **kwargs):
        super().destroy(context, instance, *args, **kwargs)
        self._sizes.pop(instance.uuid, None)
        self._save()

    def _set_state(self, instance, state):
        if instance.uuid in self.instances:
            self.instances[instance.uuid].state = state
            self._save()

    def power_off(self, instance, *args, **kwargs):
        super().power_off(instance, *args, **kwargs)
        self._save()

    def power_on(self, context, instance, *args, **kwargs):
        super().power_on(context, instance, *args, **kwargs)
        self._save()

    def pause(self, instance):
        self._set_state(instance, power_state.PAUSED)

    def unpause(self, instance):
        self._set_state(instance, power_state.RUNNING)

    def suspend(self, context, instance):
        self._set_state(instance, power_state.SUSPENDED)

    def resume(self, context, instance, *args, **kwargs):
        self._set_state(instance, power_state.RUNNING)

    # A live migration ends as it is told, and leaves its source clean.

    def live_migration(
        self, context, instance, dest, post_method, recover_method, block_migration=False, migrate_data=None
    ):
        end = self._moves.await_end(instance, migrate_data.migration)
        if end == "completed":
            post_method(context, instance, dest, block_migration, migrate_data)
        else:
            recover_method(context, instance, dest, migrate_data, migration_status=end)

    def live_migration_abort(self, instance):
        self._moves.abort(instance)

    def live_migration_force_complete(self, instance):
        pass

    def post_live_migration_at_source(self, context, instance, network_info):
        if instance.uuid in self.instances:
            self.resources.release(*self._sizes.get(instance.uuid, (0, 0, 0)))
            del self.instances[instance.uuid]
            self._sizes.pop(instance.uuid, None)
            self._save()

    # An image with a content.

    def snapshot(self, context, instance, image_id, update_task_state):
        super().snapshot(context, instance, image_id, update_task_state)
        update_task_state(task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_UPLOADING)
        self._image_api.update(
            context,
            image_id,
            {"disk_format": "raw", "container_format": "bare"},
            io.BytesIO(b"a snapshot of " + instance.uuid.encode()),
        )
