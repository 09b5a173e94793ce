# SPDX-License-Identifier: Apache-2.0
"""Reservations of volumes: what is made of them in a cloud."""
