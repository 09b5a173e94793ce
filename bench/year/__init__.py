# SPDX-License-Identifier: Apache-2.0
"""A year of bookings of whole hosts of ten classes, with the calendar's own code, with and without other hosts."""
