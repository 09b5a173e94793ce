# SPDX-License-Identifier: Apache-2.0
"""Reservations of servers, which the service boots at the start of a lease."""
