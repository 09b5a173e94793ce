# SPDX-License-Identifier: Apache-2.0
"""Addresses of external networks: the resource type ``virtual:floatingip``, and their registration."""
