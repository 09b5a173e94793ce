# SPDX-License-Identifier: Apache-2.0
"""Segments that operators register, and reservations of networks on them: the resource type ``network``."""
