# SPDX-License-Identifier: Apache-2.0
"""Reservations of servers: what is made of them in a cloud."""
