# SPDX-License-Identifier: Apache-2.0
"""Devices that operators register, and reservations of whole devices: the resource type ``device``."""
