# SPDX-License-Identifier: Apache-2.0
"""Booking: plans from the calendar and their write, replacements, decided changes, quotas, unique names."""
