# SPDX-License-Identifier: Apache-2.0
"""The adapter of a real OpenStack cloud. Only this package uses openstacksdk and keystoneauth."""

from blazar.clouds.openstack.access import Access, Credentials
from blazar.clouds.openstack.cloud import open_cloud

__all__ = ["Access", "Credentials", "open_cloud"]
