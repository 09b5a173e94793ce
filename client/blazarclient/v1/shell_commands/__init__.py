# SPDX-License-Identifier: Apache-2.0
"""The commands that clients of version 1 have always had; those of ``openstack reservation`` are the same classes."""
