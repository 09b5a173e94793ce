# SPDX-License-Identifier: Apache-2.0
"""Reservations of networks, from the registration of segments to the end."""
