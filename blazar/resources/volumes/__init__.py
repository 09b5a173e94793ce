# SPDX-License-Identifier: Apache-2.0
"""Pools of storage that operators give to reservations, and volumes on them: the resource type ``virtual:volume``."""
