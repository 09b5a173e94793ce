# SPDX-License-Identifier: Apache-2.0
"""Whole compute hosts: the resource type ``physical:host``, and the registration of hosts."""
