# SPDX-License-Identifier: Apache-2.0
"""Capacity for servers on shared hosts: the resource types ``virtual:instance`` and ``flavor:instance``."""
