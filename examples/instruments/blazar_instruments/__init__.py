# SPDX-License-Identifier: Apache-2.0
"""Reservations of the channels of laboratory instruments."""
