# SPDX-License-Identifier: Apache-2.0
"""Months of a virtual cloud whose hosts sleep: the plan of ``blazar.calendar.power`` in virtual time."""
