# SPDX-License-Identifier: Apache-2.0
"""A waiting list in virtual time: the plan of ``blazar.calendar.queue`` against refusing what does not fit at once."""
