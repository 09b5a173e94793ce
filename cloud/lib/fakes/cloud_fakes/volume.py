# SPDX-License-Identifier: Apache-2.0
"""A Cinder driver of volumes without content, in pools with a capacity.

It tells the scheduler what a real driver tells it, so that a volume that does
not fit ends in error, with the reason of the scheduler.
"""

import io

from cinder.tests import fake_driver
from cinder.volume import volume_utils

THICK = {"reserved_percentage": 10, "thick_provisioning_support": True, "thin_provisioning_support": False}
THIN = {
    "reserved_percentage": 0,
    "thick_provisioning_support": False,
    "thin_provisioning_support": True,
    "max_over_subscription_ratio": "2.0",
}
POOLS = {
    "thick": {"total_capacity_gb": 100, **THICK},
    "thick-2": {"total_capacity_gb": 50, **THICK},
    "thin": {"total_capacity_gb": 100, **THIN},
}


class CloudFakeVolumeDriver(fake_driver.FakeLoggingVolumeDriver):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Pool and GiB of each volume, by its id.
        self.sizes = {}

    def _note(self, volume, size=None):
        self.sizes[volume["id"]] = (volume_utils.extract_host(volume["host"], "pool"), size or volume["size"])

    def create_volume(self, volume):
        self._note(volume)

    def create_cloned_volume(self, volume, src_vol):
        self._note(volume)

    def create_volume_from_snapshot(self, volume, snapshot):
        self._note(volume)

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Say that the image is in the volume."""
        self._note(volume)
        return {}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        """Give the image a few bytes."""
        image_service.update(context, image_meta["id"], {}, io.BytesIO(b"a volume"))

    def ensure_export(self, context, volume):
        """Called for each volume when the service starts."""
        self._note(volume)

    def extend_volume(self, volume, new_size):
        self._note(volume, new_size)

    def delete_volume(self, volume):
        self.sizes.pop(volume["id"], None)

    def get_volume_stats(self, refresh=False):
        self._update_volume_stats()
        return self._stats

    def _update_volume_stats(self):
        pools = []
        for name, facts in POOLS.items():
            provisioned = sum(size for pool, size in self.sizes.values() if pool == name)
            # Thin volumes without content take nothing.
            taken = 0 if facts["thin_provisioning_support"] else provisioned
            pool = {
                "pool_name": name,
                "free_capacity_gb": facts["total_capacity_gb"] - taken,
                "provisioned_capacity_gb": provisioned,
                "QoS_support": False,
                "multiattach": True,
            }
            pools.append({**pool, **facts})
        self._stats = {
            "volume_backend_name": "fake",
            "vendor_name": "none",
            "driver_version": "1",
            "storage_protocol": "fake",
            "pools": pools,
        }
