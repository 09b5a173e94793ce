# SPDX-License-Identifier: Apache-2.0
"""The plugin of the ``openstack`` command."""
